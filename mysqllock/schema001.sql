-- Schema 1 for MariaDB 10.6 and MySQL 8, in the words that both have, but for the tokens. Whoever applies it writes another prefix in place of "interlock_".
-- Its statements end in a line of two slashes, which delimits them for a client too.
--
-- Times are microseconds since 1970 by the database's clock. utc_timestamp() knows no time zone and no summer time, and stands still
-- within one statement of a procedure only. What people write (names, notes, owners) is bytes: no collation folds it. What a
-- procedure compares or cuts is bytes, too, so that neither sql_mode nor a character set of the session has a say.
delimiter //

-- One row a name, and the whole line in it, in order of arrival: what is decided of a line is decided under the lock of one row. Rows
-- are never deleted, so tokens survive. A claim is a line of text, whose columns are
--    1 id       22  a secret of its owner
--   24 session  22  whose it is; a secret
--   47 state     1  1 waits, 2 held, 3 broken: an operator took it away; it keeps others out until it leaves, or until stop
--   49 kind      1  1 mutex, 2 write, 3 read, 4 permit
--   51 weight   10
--   62 limit    10
--   73 since    16  when it was granted, or when it joined while it waits
--   90 fence    16  the lowest of its tokens; 0 while it waits or shares
--  107 stop     16  when a broken claim goes by itself
--  124 gate     22  the lock 'interlock GATE' of the server is held as long as this claim is in line, if all is well; dots for none
--  147 passes, a blank, and the note in hexadecimal digits
create table interlock_lock (
  name varbinary(1024) primary key,
  fence bigint not null, -- the highest token reserved
  line mediumblob not null
) engine = innodb row_format = dynamic
//

-- One row a session: one update renews any number of claims.
create table interlock_session (
  id varbinary(22) primary key,
  ttl bigint not null,
  valid_until bigint not null,
  broken mediumblob not null, -- its claims that an operator broke, each with a blank, until they are released
  owner blob not null
) engine = innodb row_format = dynamic
//

-- lookup answers until when a session is valid, null where it is no more. It declares dead who is over: under the lock of the session's
-- row, since a snapshot may be older than a renewal. A row that somebody else has, who renews it or declares it dead, is left to
-- him; nobody waits for two.
create procedure interlock_lookup(p_session varbinary(22), us bigint, out valid bigint) sql security invoker
begin
  declare dead varbinary(22);
  set valid = null;
  select s.valid_until into valid from interlock_session s where s.id = p_session;
  if valid <= us then
    select s.id into dead from interlock_session s where s.id = p_session and s.valid_until <= us for update skip locked;
    if dead is not null then
      delete from interlock_session where id = p_session;
      set valid = null;
    end if;
  end if;
end
//

-- settle writes what came of a line, by the rule as driver/line has it: a claim is held when its weight and the weights of all claims
-- ahead of it add up to at most its limit. It takes out who is dead. It ends where nobody behind can be held, but not before p_to.
create procedure interlock_settle(inout fence bigint, inout line mediumblob, us bigint, p_to varbinary(22), out total bigint) sql security invoker
begin
  declare at, behind int default 1;
  declare c blob;
  declare whose, seen varbinary(22) default '';
  declare valid bigint;
  declare spent boolean default false;
  set total = 0;
  while at <= length(line) and (total < 2147483647 or p_to is not null) do
    set behind = locate(x'0a', line, at) + 1;
    set c = substr(line, at, behind - at);
    set whose = substr(c, 24, 22);
    if whose <> seen then
      call interlock_lookup(whose, us, valid);
      set seen = whose;
    end if;
    if valid is null or substr(c, 47, 1) = '3' and substr(c, 107, 16) <= us then
      set line = concat(left(line, at - 1), substr(line, behind));
    else
      set total = total + substr(c, 51, 10);
      if substr(c, 47, 1) = '1' and total <= substr(c, 62, 10) and not spent then
        if substr(c, 49, 1) > '2' then
          set line = concat(left(line, at + 45), '2', substr(c, 48, 25), lpad(us, 16, '0'), substr(line, at + 88));
        elseif greatest(fence + 32, us) > 9007199254740991 then
          set spent = true; -- this one and all behind go on waiting
        else
          set fence = greatest(fence + 32, us);
          set line = concat(left(line, at + 45), '2', substr(c, 48, 25), lpad(us, 16, '0'), ' ', lpad(fence - 31, 16, '0'), substr(line, at + 105));
        end if;
      end if;
      if left(c, 22) = p_to then
        set p_to = null;
      end if;
      set at = behind;
    end if;
  end while;
end
//

-- place is how a claim stands in a line. state: 1 waits, 2 held, 3 broken, 4 not there. left_us: when it should look again by
-- itself, -1 for never. Only the first who waits looks behind holders, and each of the others behind who waits before it. gate: that of
-- the claim before it, without whose leaving an exclusive one cannot be held. A reader can, when others look at the line first.
create procedure interlock_place(
  line mediumblob, p_id varbinary(22), us bigint, out state int, out fence bigint, out left_us bigint, out head boolean, out gate varbinary(22))
  sql security invoker
begin
  declare at int default locate(concat(x'0a', p_id, ' '), concat(x'0a', line));
  declare c blob;
  declare mine, whose varbinary(22);
  declare alone boolean;
  declare valid, ends bigint;
  set state = 4, fence = 0, left_us = -1, head = false, gate = null;
  if at > 0 then
    set state = substr(line, at + 46, 1), fence = substr(line, at + 89, 16), mine = substr(line, at + 23, 22), alone = substr(line, at + 48, 1) < '3';
    set head = state = 1;
    while state = 1 and head and at > 1 do -- backwards
      set c = substring_index(left(line, at - 2), x'0a', -1);
      set at = at - 1 - length(c);
      set whose = substr(c, 24, 22), valid = us;
      if alone then
        set gate = coalesce(gate, substr(c, 124, 22));
      end if;
      select s.valid_until into valid from interlock_session s where s.id = whose;
      if substr(c, 47, 1) = '1' then
        set head = false;
        if whose <> mine then
          set left_us = greatest(valid - us, 0);
        end if;
      else
        set ends = least(coalesce(ends, valid), valid, if(substr(c, 47, 1) = '3', substr(c, 107, 16), valid));
      end if;
    end while;
    if head then
      set left_us = greatest(coalesce(ends, us) - us, 0);
    end if;
  end if;
  set gate = coalesce(gate, repeat('.', 22));
end
//

-- turn is every step of a line: p_old leaves it and p_id joins it, or is found there; either may be null. p_again: it was in
-- line before, and is not put there again; then p_queue says whether the session is renewed. p_deadline: when the request is void, however late it comes. p_patience: how many seconds it
-- waits for others. p_gate: that of p_id. p_open: that of p_old, which this connection has; it is opened where others stand there, as soon as
-- the row is written: who waits behind it then waits for the row, but not for the disk.
--
-- The answer is in words: state, was, fence, left_us, head, gate, others: somebody else than p_id stands there, and of who is in the way of a claim that is not held: until when his session is
-- valid, his owner in hexadecimal digits, and his claim; or the first of them.
-- state: 0 not held and no trace left, 1 waits, 2 held, 3 broken, 4 gone, 5 does not go with those who stand there, 6 the session is
-- over, 7 void, with what the time is in place of a token. was: p_old was held until now.
create procedure interlock_turn(
  p_name varbinary(1024), p_session varbinary(22), p_old varbinary(22), p_id varbinary(22), p_again boolean, p_queue boolean, p_kind int,
  p_weight bigint, p_lim bigint, p_passes int, p_note blob, p_deadline bigint, p_patience int, p_gate varbinary(22), p_open varbinary(22))
  sql security invoker
begin
  declare patience int default @@innodb_lock_wait_timeout;
  declare us bigint default timestampdiff(microsecond, '1970-01-01', utc_timestamp(6));
  declare answer mediumblob;
  set transaction isolation level read committed; -- fails where a transaction is under way, which this one would end
  step: begin
    declare opened int;
    declare exit handler for sqlexception begin rollback; set innodb_lock_wait_timeout = patience; resignal; end;
    set innodb_lock_wait_timeout = p_patience;
    start transaction;
    -- What happens most is done in one statement. It is not late, however long it waits for the row. Who has been declared dead, or
    -- should be, has not held until now.
    if p_old is null and not p_again and p_kind < 3 and us + p_patience * 1000000 <= p_deadline then
      -- Nobody is in line, and the session was renewed just now: it holds.
      update interlock_lock l set
        l.line = concat(p_id, ' ', p_session, ' 2 ', p_kind, ' ', lpad(p_weight, 10, '0'), ' ', lpad(p_lim, 10, '0'), ' ', lpad(us, 16, '0'), ' ',
          lpad(greatest(l.fence + 32, us) - 31, 16, '0'), ' ', repeat('0', 16), ' ', p_gate, ' ', p_passes, ' ', hex(p_note), x'0a'),
        l.fence = greatest(l.fence + 32, us)
      where l.name = p_name and l.line = '' and greatest(l.fence + 32, us) <= 9007199254740991
        and exists (select 1 from interlock_session s where s.id = p_session and s.valid_until > us + s.ttl - s.ttl div 10);
      if row_count() > 0 then
        select concat('2 f ', l.fence - 31, ' -1 f ', repeat('.', 22), ' f') into answer from interlock_lock l where l.name = p_name;
        leave step;
      end if;
    end if;
    if p_id is null then
      -- Alone in line, it leaves.
      update interlock_lock l set l.line = '' where l.name = p_name and left(l.line, 47) = concat(p_old, ' ', p_session, ' 2')
        and locate(x'0a', l.line) = length(l.line) and exists (select 1 from interlock_session s where s.id = p_session and s.valid_until > us);
      if row_count() > 0 then
        set answer = '0 t';
        leave step;
      end if;
    end if;
    if p_old is not null and (p_id is null or p_queue and p_kind < 4 and us + p_patience * 1000000 <= p_deadline) then
      -- It leaves, the next one is let in, and p_id waits.
      update interlock_lock l set
        l.line = concat(substr(l.line, locate(x'0a', l.line) + 1, 46), '2', substr(l.line, locate(x'0a', l.line) + 48, 25), lpad(us, 16, '0'), ' ',
          lpad(greatest(l.fence + 32, us) - 31, 16, '0'), substr(l.line, locate(x'0a', l.line) + 106),
          if(p_id is null, '', concat(p_id, ' ', p_session, ' 1 ', p_kind, ' ', lpad(p_weight, 10, '0'), ' ', lpad(p_lim, 10, '0'), ' ',
            lpad(us, 16, '0'), ' ', repeat('0', 16), ' ', repeat('0', 16), ' ', p_gate, ' ', p_passes, ' ', hex(p_note), x'0a'))),
        l.fence = greatest(l.fence + 32, us)
      where l.name = p_name and left(l.line, 47) = concat(p_old, ' ', p_session, ' 2') and substr(l.line, 49, 1) < '3'
        and substr(l.line, locate(x'0a', l.line) + 47, 1) = '1' and substr(l.line, locate(x'0a', l.line) + 49, 1) < '3'
        and greatest(l.fence + 32, us) <= 9007199254740991
        and 2 = (select count(*) from interlock_session s where s.id in (p_session, substr(l.line, locate(x'0a', l.line) + 24, 22))
          and s.valid_until > us + if(s.id = p_session and p_id is not null, s.ttl - s.ttl div 10, 0));
      if row_count() > 0 then
        if p_open is not null then
          set opened = release_lock(concat('interlock ', p_open));
        end if;
        commit; -- who is let in waits for it, in the memory of the server
        set answer = concat(if(p_id is null, 0, 1), ' t 0 0 f ...................... t');
        if p_id is not null then
          set transaction isolation level read committed;
          start transaction;
          begin -- How it stands behind the one before it, if it is the last one still; else it looks at once.
            declare c blob;
            declare valid bigint default us;
            select substring_index(substring_index(l.line, x'0a', -3), x'0a', 1) into c from interlock_lock l
              where l.name = p_name and left(substring_index(l.line, x'0a', -2), 47) = concat(p_id, ' ', p_session, ' 1');
            select s.valid_until into valid from interlock_session s where s.id = substr(c, 24, 22);
            if substr(c, 47, 1) < '3' then
              set answer = concat('1 t 0 ', if(substr(c, 24, 22) = p_session and substr(c, 47, 1) = '1', -1, greatest(valid - us, 0)),
                if(substr(c, 47, 1) = '1', ' f ', ' t '), substr(c, 124, 22), ' t');
            end if;
          end;
        end if;
        leave step;
      end if;
    end if;
    begin
      declare v_fence, valid, fresh, total, left_us, at bigint default 0;
      declare v_line, stood mediumblob;
      declare state int default 0;
      declare was, there, head, others boolean default false;
      declare gate varbinary(22) default repeat('.', 22);
      select l.fence, l.line into v_fence, v_line from interlock_lock l where l.name = p_name for update;
      if v_line is null and p_id is not null and not p_again then
        insert into interlock_lock (name, fence, line) values (p_name, 0, '') on duplicate key update name = p_name;
        select l.fence, l.line into v_fence, v_line from interlock_lock l where l.name = p_name for update;
      end if;
      set us = timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)); -- the row may have been waited for
      set v_line = coalesce(v_line, ''), stood = v_line;
      if p_id is not null and us > p_deadline then
        set answer = concat('7 f ', us);
        leave step;
      end if;
      select s.valid_until, s.valid_until - us - if(p_again and not p_queue, 1, s.ttl - s.ttl div 10) into valid, fresh from interlock_session s where s.id = p_session;
      if p_id is not null and (valid = 0 or fresh < 0) then -- behind the row of the line: who renews holds no other
        update interlock_session s set s.valid_until = us + s.ttl where s.id = p_session and s.valid_until > us;
        if not exists (select 1 from interlock_session s where s.id = p_session and s.valid_until > us) then -- row_count() counts what differs
          set answer = '6 f';
          leave step;
        end if;
      end if;

      if p_old is not null then
        set at = locate(concat(x'0a', p_old, ' '), concat(x'0a', v_line));
        if at > 0 then
          set was = substr(v_line, at + 46, 1) = '2' and valid > us;
          set v_line = concat(left(v_line, at - 1), substr(v_line, locate(x'0a', v_line, at) + 1));
        end if;
        if not was then
          update interlock_session s set s.broken = replace(s.broken, concat(p_old, ' '), '') where s.id = p_session and locate(p_old, s.broken) > 0;
        end if;
      end if;
      if v_line <> '' then
        call interlock_settle(v_fence, v_line, us, if(p_again, p_id, null), total);
        set there = locate(concat(x'0a', coalesce(p_id, '-'), ' '), concat(x'0a', v_line)) > 0;
      end if;
      if there then
        call interlock_place(v_line, p_id, us, state, at, left_us, head, gate);
      elseif p_id is not null and p_again then
        select if(locate(p_id, s.broken) > 0, 3, 4) into state from interlock_session s where s.id = p_session;
      elseif p_id is not null and v_line <> '' and (substr(v_line, 49, 1) = '4') <> (p_kind = 4) then
        set state = 5;
      elseif p_id is not null and (p_queue or total + p_weight <= p_lim) then
        set state = 1, at = 0, left_us = -1;
        if total + p_weight <= p_lim and (p_kind > 2 or greatest(v_fence + 32, us) <= 9007199254740991) then
          set state = 2;
          if p_kind <= 2 then
            set v_fence = greatest(v_fence + 32, us), at = v_fence - 31;
          end if;
        end if;
        set v_line = concat(v_line, p_id, ' ', p_session, ' ', state, ' ', p_kind, ' ', lpad(p_weight, 10, '0'), ' ', lpad(p_lim, 10, '0'), ' ',
          lpad(us, 16, '0'), ' ', lpad(at, 16, '0'), ' ', repeat('0', 16), ' ', p_gate, ' ', p_passes, ' ', hex(p_note), x'0a');
        if state = 1 then
          call interlock_place(v_line, p_id, us, state, at, left_us, head, gate);
        end if;
      end if;
      if v_line <> stood then
        update interlock_lock l set l.fence = v_fence, l.line = v_line where l.name = p_name;
      end if;
      set others = if(state in (1, 2), locate(x'0a', v_line) < length(v_line), v_line <> '');
      if others and p_open is not null then
        set opened = release_lock(concat('interlock ', p_open));
      end if;
      set answer = concat(state, if(was, ' t ', ' f '), at, ' ', left_us, if(head, ' t ', ' f '), gate, if(others, ' t', ' f'));
      if p_id is not null and state < 2 then
        select concat(answer, ' ', s.valid_until, ' ', hex(s.owner), ' ', substring_index(v_line, x'0a', 1)) into answer
          from interlock_session s where s.id = substr(v_line, 24, 22);
      end if;
    end;
  end;
  commit;
  set innodb_lock_wait_timeout = patience;
  select answer;
end
//

-- depart takes claims that give up together out of a line, which is looked at once for all, and hands over. p_claims is a line for each: its
-- id, a blank, and its session. The answer is whether others stand there, and then of each whether it was held until now.
create procedure interlock_depart(p_name varbinary(1024), p_claims mediumblob, p_patience int) sql security invoker
begin
  declare patience int default @@innodb_lock_wait_timeout;
  declare answer mediumblob default '';
  set transaction isolation level read committed; -- fails where a transaction is under way, which this one would end
  begin
    declare us, v_fence, total bigint;
    declare n, at int default 1;
    declare v_line, stood mediumblob;
    declare p_id, whose varbinary(22);
    declare was boolean;
    declare exit handler for sqlexception begin rollback; set innodb_lock_wait_timeout = patience; resignal; end;
    set innodb_lock_wait_timeout = p_patience;
    start transaction;
    select l.fence, l.line into v_fence, v_line from interlock_lock l where l.name = p_name for update;
    set us = timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)); -- the row may have been waited for
    set v_line = concat(x'0a', coalesce(v_line, '')), stood = v_line;
    while n <= length(p_claims) do
      set p_id = substr(p_claims, n, 22), whose = substr(p_claims, n + 23, 22), n = n + 46, was = false;
      set at = locate(concat(x'0a', p_id, ' '), v_line);
      if at > 0 then
        if substr(v_line, at + 47, 1) = '2' then -- it was let in, and has not heard of it
          select count(*) into was from interlock_session s where s.id = whose and s.valid_until > us;
        end if;
        set v_line = concat(left(v_line, at), substr(v_line, locate(x'0a', v_line, at + 1) + 1));
      end if;
      if not was then
        update interlock_session s set s.broken = replace(s.broken, concat(p_id, ' '), '') where s.id = whose and locate(p_id, s.broken) > 0;
      end if;
      set answer = concat(answer, if(was, ' t', ' f'));
    end while;
    if v_line <> stood then
      set v_line = substr(v_line, 2);
      call interlock_settle(v_fence, v_line, us, null, total);
      update interlock_lock l set l.fence = v_fence, l.line = v_line where l.name = p_name;
      set v_line = concat(x'0a', v_line);
    end if;
    set answer = concat(if(v_line <> x'0a', 't', 'f'), answer);
  end;
  commit;
  set innodb_lock_wait_timeout = patience;
  select answer;
end
//

-- open makes a session and answers what the time is. On the way it sweeps up after sessions that ended long ago and stood in no line that
-- anybody looked at. It looks at the next few by their IDs, which are random, and goes on as long as it finds one: so no more of them stay
-- than a small part of all, and what it costs does not grow with how many there are, nor with how many open at once.
create procedure interlock_open(p_session varbinary(22), p_ttl bigint, p_owner blob) sql security invoker
begin
  declare us, valid bigint;
  declare n int default 0;
  declare dead, past varbinary(22) default p_session;
  set transaction isolation level read committed;
  begin
    declare exit handler for sqlexception begin rollback; resignal; end;
    start transaction;
    set us = timestampdiff(microsecond, '1970-01-01', utc_timestamp(6));
    repeat
      set n = n + 1, past = dead, dead = null;
      select min(o.id) into dead from (select s.id, s.valid_until from interlock_session s where s.id > past order by s.id limit 20) o
        where o.valid_until < us - 3600000000;
      if dead is not null then
        call interlock_lookup(dead, us, valid);
      end if;
    until dead is null or n = 20 end repeat;
    insert into interlock_session (id, ttl, valid_until, broken, owner) values (p_session, p_ttl, us + p_ttl, '', p_owner)
      on duplicate key update valid_until = us + p_ttl;
    commit;
  end;
  select us;
end
//

-- look answers how a claim stands, as turn does in words: state, fence, left_us, head, gate. It changes nothing and waits for nobody; with
-- p_gate it waits until that is open, and then for who opened it and is about to commit. Who takes away the claim of that gate cannot open
-- it, so it waits only while this claim stands before p_id, and looks again each second. Break ends who looked too early: from the look
-- at the line to the end of the wait no statement hides this one in the process list, so the commit, of who has no autocommit, comes last.
create procedure interlock_look(p_name varbinary(1024), p_session varbinary(22), p_id varbinary(22), p_gate varbinary(22)) sql security invoker
begin
  declare told, got, before_it int default 0;
  if p_gate is not null then
    begin
      declare exit handler for sqlexception begin rollback; resignal; end;
      while got = 0 do
        set got = null;
        set transaction isolation level read committed;
        -- Only a SELECT of its own locks nothing: in an IF it would lock the line for who leaves it, and without autocommit for as long as the wait.
        select count(*) into before_it from interlock_lock l where l.name = p_name
          and substr(substring_index(left(l.line, locate(concat(x'0a', p_id, ' '), l.line) - 1), x'0a', -1), 124, 22) = p_gate;
        if before_it > 0 then
          set got = get_lock(concat('interlock ', p_gate), 1);
        end if;
        commit;
      end while;
      if got = 1 then
        select concat('2 ', substr(l.line, 90, 16), ' -1 f ', p_gate) from interlock_lock l
          where l.name = p_name and left(l.line, 47) = concat(p_id, ' ', p_session, ' 2') lock in share mode;
        set told = found_rows();
        set got = release_lock(concat('interlock ', p_gate));
        commit;
      end if;
    end;
  end if;
  if told = 0 then
    begin
      declare v_line mediumblob default '';
      declare us, fence, left_us bigint;
      declare state, alive int default 0;
      declare head boolean;
      declare gate varbinary(22);
      set transaction isolation level read committed;
      start transaction;
      select l.line into v_line from interlock_lock l where l.name = p_name;
      set us = timestampdiff(microsecond, '1970-01-01', utc_timestamp(6));
      call interlock_place(v_line, p_id, us, state, fence, left_us, head, gate);
      select count(*) into alive from interlock_session s where s.id = p_session and s.valid_until > us;
      commit;
      select concat(if(alive, state, 6), ' ', fence, ' ', left_us, if(head, ' t ', ' f '), gate);
    end;
  end if;
end
//

-- renew renews a session and answers how each of its claims stands that is not held as it was known to be. p_claims is a line for each:
-- its id, 2 if it is known to be held or else 1, and the name in hexadecimal digits. The answer is 6 of a session that is over; of one
-- that lives it begins with 0 and what the time is, and has a line for each such claim: its number from 1, state, fence, left_us, head, gate.
create procedure interlock_renew(p_session varbinary(22), p_claims longblob, p_patience int) sql security invoker
begin
  declare patience int default @@innodb_lock_wait_timeout;
  declare answer longblob;
  set transaction isolation level read committed;
  step: begin
    declare us, fence, left_us bigint;
    declare gone, v_line mediumblob;
    declare c blob;
    declare p_id varbinary(22);
    declare at, n int default 0;
    declare state int;
    declare head boolean;
    declare gate varbinary(22);
    declare exit handler for sqlexception begin rollback; set innodb_lock_wait_timeout = patience; resignal; end;
    set innodb_lock_wait_timeout = p_patience;
    start transaction;
    set us = timestampdiff(microsecond, '1970-01-01', utc_timestamp(6));
    update interlock_session s set s.valid_until = us + s.ttl where s.id = p_session and s.valid_until > us;
    select s.broken into gone from interlock_session s where s.id = p_session and s.valid_until > us; -- row_count() counts what differs
    if gone is null then
      set answer = '6';
      leave step;
    end if;
    set answer = concat('0 ', us), at = 1;
    while at <= length(p_claims) do
      set c = substr(p_claims, at, locate(x'0a', p_claims, at) - at), at = at + length(c) + 1, n = n + 1, p_id = left(c, 22), v_line = '';
      select l.line into v_line from interlock_lock l where l.name = unhex(substr(c, 26));
      if left(v_line, 47) <> concat(p_id, ' ', p_session, ' 2') or substr(c, 24, 1) <> '2' then -- most are; the rest costs more
        call interlock_place(v_line, p_id, us, state, fence, left_us, head, gate);
        if state <> 2 or substr(c, 24, 1) <> '2' then
          set answer = concat(answer, x'0a', n, ' ', if(state = 4 and locate(p_id, gone) > 0, 3, state), ' ', fence, ' ', left_us, if(head, ' t ', ' f '), gate);
        end if;
      end if;
    end while;
  end;
  commit;
  set innodb_lock_wait_timeout = patience;
  select answer;
end
//

-- leave takes every claim of a session out of a line, and hands over.
create procedure interlock_leave(p_name varbinary(1024), p_session varbinary(22)) sql security invoker
begin
  declare v_fence, total, at bigint;
  declare v_line, stood mediumblob;
  select l.fence, l.line into v_fence, v_line from interlock_lock l where l.name = p_name for update;
  set stood = v_line, at = locate(concat(' ', p_session, ' '), v_line) - 22;
  while at > 0 do
    set v_line = concat(left(v_line, at - 1), substr(v_line, locate(x'0a', v_line, at) + 1));
    set at = locate(concat(' ', p_session, ' '), v_line) - 22;
  end while;
  if v_line <> stood then
    call interlock_settle(v_fence, v_line, timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), null, total);
    update interlock_lock l set l.fence = v_fence, l.line = v_line where l.name = p_name;
  end if;
end
//

-- finish ends a session: it leaves the lines of p_names, which are in order and in hexadecimal digits with a line for each, or where that
-- is null every line, and hands over. The row of the session goes last, since who looks at a line wants it after that of the line.
-- By hand, to end somebody else's: call interlock_finish('…', null).
create procedure interlock_finish(p_session varbinary(22), p_names longblob) sql security invoker
begin
  declare patience int default @@innodb_lock_wait_timeout;
  declare at int default 1;
  declare v_name varbinary(2048) default '';
  set transaction isolation level read committed;
  begin
    declare exit handler for sqlexception begin rollback; set innodb_lock_wait_timeout = patience; resignal; end;
    set innodb_lock_wait_timeout = 10;
    start transaction;
    if p_names is null then
      repeat
        set at = 0;
        select min(l.name), count(*) into v_name, at from interlock_lock l where l.name > v_name and locate(concat(' ', p_session, ' '), l.line) > 0;
        if at > 0 then
          call interlock_leave(v_name, p_session);
        end if;
      until at = 0 end repeat;
    else
      while at <= length(p_names) do
        set v_name = substr(p_names, at, locate(x'0a', p_names, at) - at), at = at + length(v_name) + 1;
        call interlock_leave(unhex(v_name), p_session);
      end while;
    end if;
    delete from interlock_session where id = p_session;
    commit;
  end;
  set innodb_lock_wait_timeout = patience;
end
//

-- break takes a claim away from its owner: a waiting one and, with p_now, a held one goes at once; otherwise it is marked, and goes
-- when it is released or when its session's time of now is over. Whether it was there as p_public and p_fence name it is the answer.
create procedure interlock_break(p_name varbinary(1024), p_public varbinary(64), p_fence bigint, p_now boolean) sql security invoker
begin
  declare patience int default @@innodb_lock_wait_timeout;
  declare v_fence, us, valid, total bigint;
  declare at int default 1;
  declare v_line mediumblob default '';
  declare c blob;
  declare hit boolean default false;
  set transaction isolation level read committed;
  begin
    declare exit handler for sqlexception begin rollback; set innodb_lock_wait_timeout = patience; resignal; end;
    set innodb_lock_wait_timeout = 10;
    start transaction;
    select l.fence, l.line into v_fence, v_line from interlock_lock l where l.name = p_name for update;
    set us = timestampdiff(microsecond, '1970-01-01', utc_timestamp(6)), valid = us;
    while at <= length(v_line) and not hit do
      set c = substr(v_line, at, locate(x'0a', v_line, at) + 1 - at);
      -- driver.PublicID
      set hit = left(sha2(concat('interlock:', left(c, 22)), 256), 12) = p_public and substr(c, 90, 16) = p_fence;
      if not hit then
        set at = at + length(c);
      end if;
    end while;
    if hit then
      if p_now or substr(c, 47, 1) = '1' then
        set v_line = concat(left(v_line, at - 1), substr(v_line, at + length(c)));
      elseif substr(c, 47, 1) = '2' then
        select s.valid_until into valid from interlock_session s where s.id = substr(c, 24, 22);
        set v_line = concat(left(v_line, at + 45), '3', substr(c, 48, 59), lpad(valid, 16, '0'), substr(v_line, at + 122));
      end if;
      call interlock_settle(v_fence, v_line, us, null, total);
      update interlock_lock l set l.fence = v_fence, l.line = v_line where l.name = p_name;
      update interlock_session s set s.broken = concat(s.broken, left(c, 22), ' ') where s.id = substr(c, 24, 22) and locate(left(c, 22), s.broken) = 0;
    end if;
    commit;
  end;
  set innodb_lock_wait_timeout = patience;
  select if(hit, 't', 'f');
end
//

-- show answers the lines of names that begin with p_prefix, or of this name alone, and then the sessions that are valid, with their owners. A
-- claim of another session is not to be shown.
create procedure interlock_show(p_prefix varbinary(1024), p_alone boolean) sql security invoker
begin
  set transaction isolation level read committed;
  start transaction;
  select l.name, l.fence, l.line from interlock_lock l
    where l.name >= p_prefix and l.name <= if(p_alone, p_prefix, rpad(p_prefix, 1024, x'ff')) and left(l.name, length(p_prefix)) = p_prefix and (p_alone or l.line <> '')
    order by l.name;
  select s.id, s.valid_until, s.owner, 1 from interlock_session s where s.valid_until > timestampdiff(microsecond, '1970-01-01', utc_timestamp(6));
  commit;
end
//

-- Tokens of locks that are no rows of ours: those in a program's own transaction, and of techniques session and rowlock. Each is the lowest of 32, and
-- none is drawn twice, whatever is rolled back. MariaDB has sequences; MySQL has none, and there it is the counter of a table, in units of
-- 32. Each of the two reads its own kind of comment, here and below.
create /*M! sequence if not exists interlock_token increment 32 maxvalue 9007199254740960 */
  /*!80000 table if not exists interlock_token (id bigint auto_increment primary key) engine = innodb */
//

-- draw draws a token, in the caller's transaction if there is one. From more than a second behind the clock it goes there first: a replica that
-- took over may lack the last draws. Neither a sequence nor a counter goes back. The row of a draw stays locked until the caller's
-- transaction ends, so two should not want the same one.
create procedure interlock_draw(out fence bigint) sql security invoker
begin
  declare us bigint default timestampdiff(microsecond, '1970-01-01', utc_timestamp(6));
  /*M! set fence = nextval(interlock_token);
  if fence < us - 1000000 then
    execute immediate concat('do setval(interlock_token, ', us, ')'); -- which takes no variable
    set fence = nextval(interlock_token);
  end if; */
  /*!80000 insert into interlock_token () values ();
  set fence = last_insert_id() * 32;
  delete from interlock_token where id = fence div 32;
  if fence < us - 1000000 then
    set us = us div 32 + connection_id() mod 32;
    insert into interlock_token (id) values (us) on duplicate key update id = us;
    delete from interlock_token where id = us;
    insert into interlock_token () values ();
    set fence = last_insert_id() * 32;
    delete from interlock_token where id = fence div 32;
  end if;
  if fence > 9007199254740960 then
    signal sqlstate '22003' set message_text = 'no token is left below 2^53';
  end if; */
end
//

-- token answers a token that no crash gives again: what is drawn from the table is committed, and for what is drawn from the sequence there is
-- advance.
create procedure interlock_token() sql security invoker
begin
  declare fence bigint;
  set transaction isolation level read committed; -- fails where a transaction is under way, which this one would end
  begin
    declare exit handler for sqlexception begin rollback; resignal; end;
    start transaction;
    call interlock_draw(fence);
    commit;
  end;
  select fence;
end
//

-- held has a row for each name that was locked in a program's own transaction, or by technique rowlock.
create table interlock_held (
  name varbinary(1024) primary key,
  turns bigint not null -- of programs' transactions
) engine = innodb row_format = dynamic
//

-- advance goes beyond what may have been drawn before a crash, which forgets what was drawn from the sequence since the log was flushed last:
-- at most what can be drawn in a second. Nothing is drawn that is ahead of the clock, unless that was set back. A connection calls it before its
-- first token.
create procedure interlock_advance() sql security invoker
begin
  /*M! declare us bigint default timestampdiff(microsecond, '1970-01-01', utc_timestamp(6));
  declare fence bigint default nextval(interlock_token);
  execute immediate concat('do setval(interlock_token, ', if(fence > us + 1000000, fence + 1000000, us), ')');
  set transaction isolation level read committed;
  start transaction; -- no name is empty: its row is written to, since a sequence alone flushes nothing
  insert into interlock_held values ('', 1) on duplicate key update turns = turns + 1;
  commit; */
end
//

-- hold locks a name until the caller's transaction ends. The answer is 0 where there is no transaction; 1 where that reads by a snapshot from before
-- the last turn, and would not see what was written in it; else 2 and a token. The insert locks the row whether there is one or
-- not, and nothing beside it; a SELECT … FOR UPDATE that finds none would lock the gap where others insert theirs.
create procedure interlock_hold(p_name varbinary(1024)) sql security invoker
begin
  declare fence, seen bigint;
  declare state int default 0;
  begin
    declare continue handler for 1568 set state = 1;
    set transaction isolation level read committed; -- fails in a transaction
  end;
  if state = 0 then
    start transaction; -- which that was for
    rollback;
  else
    insert into interlock_held values (p_name, 0) on duplicate key update name = p_name;
    select h.turns into seen from interlock_held h where h.name = p_name; -- as the transaction reads everything
    update interlock_held set turns = turns + 1 where name = p_name and turns = seen; -- as the row is
    if row_count() > 0 then
      set state = 2;
      call interlock_draw(fence);
    end if;
  end if;
  select concat(state, ' ', coalesce(fence, 0));
end
//

-- row begins a transaction of technique rowlock, at READ COMMITTED, and locks a name's row by its primary key: if it is free, or with p_waits as soon
-- as it is, also where who had made it has rolled back. The answer is 0, or -1 where it was not free.
create procedure interlock_row(p_name varbinary(1024), p_waits boolean) sql security invoker
begin
  declare had bigint;
  set transaction isolation level read committed;
  start transaction;
  if p_waits then
    set innodb_lock_wait_timeout = 31536000;
    insert into interlock_held values (p_name, 0) on duplicate key update name = p_name;
    set had = 0;
  else
    select h.turns into had from interlock_held h where h.name = p_name for update skip locked;
  end if;
  if had is null then
    rollback;
  end if;
  select if(had is null, -1, 0);
end
//

-- get takes a named lock, waits so many seconds for it, and answers its token, or -1.
create procedure interlock_get(p_key varbinary(64), p_patience int) sql security invoker
begin
  if get_lock(p_key, p_patience) = 1 then
    call interlock_token(); -- in a statement of its own: while one waits, what it uses is kept from a FLUSH TABLES
  else
    select -1;
  end if;
end
//

-- Last, since it says that all is there.
create table interlock_version (version int not null) engine = innodb
//
insert into interlock_version values (1)
//
commit -- of who has no autocommit
//
