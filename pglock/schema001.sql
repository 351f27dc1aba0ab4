-- Schema 1, all in one transaction.
--
-- Times are microseconds since 1970 by the database's clock, which no time zone touches. What people write (names, notes,
-- owners) is bytes: no collation folds it, and no encoding refuses it.

create type interlock.claim as (
  id text,          -- a secret of its owner
  session text,     -- whose it is; a secret
  kind int,         -- 1 mutex, 2 write, 3 read, 4 permit
  weight int,
  lim int,
  held boolean,
  broken boolean,   -- an operator took it away; it keeps others out until it leaves, or until stop
  stop bigint,      -- when a broken claim goes by itself
  since bigint,     -- when it was granted, or when it joined while it waits
  fence bigint,     -- the lowest of its tokens; 0 while it waits or shares
  passes int,
  note bytea
);

-- One row a name, and the whole line in it: what is decided of a line is decided under the lock of one row, which READ
-- COMMITTED reads again after waiting for it. Rows are never deleted, so tokens survive. Room is left in the pages to update
-- rows in place.
create table interlock.lock (
  name bytea primary key,
  fence bigint not null check (fence between 0 and 9007199254740991), -- the highest token reserved
  line interlock.claim[] not null                                     -- in order of arrival
) with (fillfactor = 40);

-- One row a session: one update renews any number of claims.
create table interlock.session (
  id text collate "C" primary key,
  channel text not null,        -- to wake it by; 128 random bits
  ttl bigint not null,
  until bigint not null,
  broken text[] not null,       -- its claims that an operator broke, until they are released
  owner bytea not null
) with (fillfactor = 40);

create table interlock.version (version int not null);
insert into interlock.version values (1);

create function interlock.us() returns bigint language sql volatile as $$
  select (extract(epoch from clock_timestamp()) * 1000000)::bigint
$$;

-- The name of a claim that people may see, as driver.PublicID.
create function interlock.public(id text) returns text language sql immutable as $$
  select encode(substr(sha256(('interlock:' || id)::bytea), 1, 6), 'hex')
$$;

-- What a message calls a claim: a nonce that only who may read its row can tell, and that releases nothing.
create function interlock.nonce(id text) returns text language sql immutable as $$
  select encode(substr(sha256(('interlock wake:' || id)::bytea), 1, 16), 'hex')
$$;

-- Every change is durable whatever the user set, and waits for nobody longer than patience, in ms.
create function interlock.careful(patience int) returns text language sql as $$
  select set_config('lock_timeout', patience::text, true)
    || case when current_setting('synchronous_commit') in ('off', 'local') then set_config('synchronous_commit', 'on', true) end
$$;

-- tell wakes who waits for a claim that is held now.
create function interlock.tell(channel text, id text, fence bigint) returns boolean language sql as $$
  select pg_notify(channel, 'h ' || interlock.nonce(id) || ' ' || fence) is null
$$;

-- again has a claim look.
create function interlock.again(channel text, id text) returns boolean language sql as $$
  select pg_notify(channel, 'r ' || interlock.nonce(id)) is null
$$;

-- settle writes what came of a line, by the rule as driver/line has it: a claim is held when its weight and the weights of all claims
-- ahead of it add up to at most its limit. Who is held now and was not is told, except one who has it in an answer. Only the first who waits
-- looks after holders: where it has left, the next one is told to.
create function interlock.settle(stands interlock.lock, ln interlock.claim[], us bigint, but text) returns interlock.claim[]
language plpgsql as $$
declare
  sum bigint := 0;
  c interlock.claim;
  first interlock.claim;
begin
  for i in 1 .. cardinality(ln) loop
    c := ln[i];
    sum := sum + c.weight;
    if c.held or sum > c.lim then
      continue;
    end if;
    if c.kind <= 2 then
      exit when greatest(stands.fence + 32, us) > 9007199254740991; -- this one and all behind go on waiting
      stands.fence := greatest(stands.fence + 32, us);
      c.fence := stands.fence - 31;
    end if;
    c.held := true;
    c.since := us;
    ln[i] := c;
    if c.id is distinct from but then
      perform interlock.tell(s.channel, c.id, c.fence) from interlock.session s where s.id = c.session;
    end if;
  end loop;
  foreach first in array coalesce(stands.line, '{}') loop
    exit when not first.held;
  end loop;
  if not first.held and not exists (select from unnest(ln) u where u.id = first.id) then
    foreach c in array ln loop
      if not c.held then
        perform interlock.again(s.channel, c.id) from interlock.session s where s.id = c.session and c.id is distinct from but;
        exit;
      end if;
    end loop;
  end if;
  if ln is distinct from stands.line then
    update interlock.lock l set fence = stands.fence, line = ln where l.name = stands.name;
  end if;
  return ln;
end $$;

-- place is how a claim stands in a line. state: 1 waits, 2 held, 3 broken, 4 not there. left_us: when it should look again by
-- itself, -1 for never. Only the first who waits looks after holders, and each of the others after who waits before it.
create function interlock.place(line interlock.claim[], p_id text, us bigint, out state int, out fence bigint, out left_us bigint, out head boolean)
language plpgsql stable as $$
declare
  c interlock.claim;
  before interlock.claim;
  ends bigint;
begin
  state := 4;
  fence := 0;
  left_us := -1;
  foreach c in array line loop
    if c.id = p_id then
      state := case when c.broken then 3 when c.held then 2 else 1 end;
      fence := c.fence;
      exit;
    end if;
    if not c.held then
      before := c;
    end if;
  end loop;
  head := state = 1 and before.id is null;
  if head then
    select min(least(s.until, case when u.broken then u.stop end)) into ends
      from unnest(line) u left join interlock.session s on s.id = u.session where u.held;
    left_us := greatest(coalesce(ends, us) - us, 0);
  elsif state = 1 and before.session <> c.session then
    select s.until into ends from interlock.session s where s.id = before.session;
    left_us := greatest(coalesce(ends, us) - us, 0);
  end if;
end $$;

-- seen is a claim as people see it.
create function interlock.seen(c interlock.claim, s interlock.session) returns json language sql stable as $$
  select json_build_object(
    'id', interlock.public(c.id), 'kind', c.kind, 'weight', c.weight, 'limit', c.lim, 'held', c.held, 'broken', c.broken,
    'since', c.since, 'until', case when c.broken then least(c.stop, s.until) else s.until end, 'fence', c.fence,
    'passes', c.passes, 'note', encode(c.note, 'base64'), 'owner', encode(s.owner, 'base64'))
$$;

-- shown is a line as people see it, without the claims of sessions whose time is over.
create function interlock.shown(line interlock.claim[], us bigint) returns json language sql stable as $$
  select coalesce(json_agg(interlock.seen(row(u.id, u.session, u.kind, u.weight, u.lim, u.held, u.broken, u.stop, u.since, u.fence, u.passes, u.note), s)
      order by u.n), '[]')
    from unnest(line) with ordinality as u(id, session, kind, weight, lim, held, broken, stop, since, fence, passes, note, n) -- to number into a long array costs its length each time
    join interlock.session s on s.id = u.session
    where s.until > us
$$;

-- bury declares sessions dead whose time is over, and returns those of a line that are no more. The caller has the lock of the
-- line's row. That a time is over is looked at under the lock of the session's row: a snapshot may be older than a renewal. A
-- row that somebody else has, who renews it or declares it dead, is left to him; nobody waits for two.
create function interlock.bury(line interlock.claim[], us bigint) returns text[] language plpgsql as $$
declare
  doubtful text[];
begin
  select array_agg(distinct u.session) into doubtful from unnest(line) u
    where not exists (select from interlock.session s where s.id = u.session and s.until > us);
  if doubtful is null then
    return '{}';
  end if;
  delete from interlock.session where id in (
    select s.id from interlock.session s where s.id = any (doubtful) and s.until <= interlock.us() order by s.id for update skip locked);
  return array(select d from unnest(doubtful) d where not exists (select from interlock.session s where s.id = d));
end $$;

-- turn is every step of a line: p_old leaves it and p_id joins it, or is found there; either may be null. p_again: it was in
-- line before, and is not put there again; then p_queue says whether the session is renewed. p_deadline: when the request is void, however late it comes.
--
-- The answer is in words, which cost less than a row: state, was, fence, left_us, head, way, or the first of them.
-- state: 0 not held and no trace left, 1 waits, 2 held, 3 broken, 4 gone, 5 does not go with those who stand there, 6 the session is
-- over, 7 void, with what the time is in place of a token, 8 not at READ COMMITTED. was: p_old was held until now. way: who is in the way of a claim that is
-- not held, unless it came by a handover, which many do and few ask.
create function interlock.turn(
  p_name bytea, p_session text, p_old text, p_id text, p_again boolean, p_queue boolean, p_kind int, p_weight int, p_lim int,
  p_passes int, p_note bytea, p_deadline bigint, p_patience int) returns text
language plpgsql as $$
declare
  us bigint := interlock.us();
  set text := interlock.careful(p_patience);
  answer text;
  told boolean;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    return '8 f';
  end if;

  -- A free name, in a session that needs no renewal, is taken by the unique index, or by finding the line empty under the
  -- lock of its row. The deadline is looked at there, too: an insert may have waited.
  if p_old is null and not p_again then
    insert into interlock.lock as l (name, fence, line)
      select p_name, case when p_kind <= 2 then us else 0 end, array[row(p_id, p_session, p_kind, p_weight, p_lim, true, false, 0, us,
        case when p_kind <= 2 then us - 31 else 0 end, p_passes, p_note)::interlock.claim]
      from interlock.session s where s.id = p_session and s.until - us >= s.ttl - s.ttl / 10 and us <= p_deadline
    on conflict (name) do update set fence = case when p_kind <= 2 then greatest(l.fence + 32, us) else l.fence end,
      line = array[row(p_id, p_session, p_kind, p_weight, p_lim, true, false, 0, us,
        case when p_kind <= 2 then greatest(l.fence + 32, us) - 31 else 0 end, p_passes, p_note)::interlock.claim]
      where cardinality(l.line) = 0 and interlock.us() <= p_deadline
    returning '2 f ' || (l.line[1]).fence into answer;
  elsif p_id is null then
    -- Alone in line, it leaves. Who has been declared dead, or should be, has not held until now.
    update interlock.lock l set line = '{}' where l.name = p_name and cardinality(l.line) = 1 and (l.line[1]).id = p_old
      and (l.line[1]).held and not (l.line[1]).broken
      and exists (select from interlock.session s where s.id = p_session and s.until > interlock.us())
    returning '0 t' into answer;
  end if;
  -- Who had it for himself hands over to the next one, who wants the same and lives, and stands at the end of the line, or goes: of
  -- all others nothing changes, and there is no need to look at them. The new one looks after who stands before him.
  if answer is null and p_old is not null and not p_again and p_kind <> 4 and (p_id is null or p_queue) then
    update interlock.lock l set fence = greatest(l.fence + 32, us),
      line = row((l.line[2]).id, s.id, (l.line[2]).kind, (l.line[2]).weight, (l.line[2]).lim, true, false, 0, us, greatest(l.fence + 32, us) - 31,
          (l.line[2]).passes, (l.line[2]).note)::interlock.claim || l.line[3:]
        || case when p_id is not null then array[row(p_id, p_session, p_kind, p_weight, p_lim, false, false, 0, us, 0, p_passes, p_note)::interlock.claim] end
      from interlock.session s
      where l.name = p_name and (l.line[1]).id = p_old and (l.line[1]).kind <= 2 and (l.line[1]).held and not (l.line[1]).broken
        and (l.line[2]).kind <= 2 and greatest(l.fence + 32, us) <= 9007199254740991
        and s.id = (l.line[2]).session and s.until > interlock.us()
        and exists (select from interlock.session m where m.id = p_session and m.until > interlock.us()
          and (p_id is null or m.until - us >= m.ttl - m.ttl / 10 and us <= p_deadline))
    returning case when p_id is null then '0 t' else concat_ws(' ', '1 t 0',
        case when cardinality(l.line) > 2 and (l.line[cardinality(l.line) - 1]).session = p_session then -1
          else greatest(coalesce((select b.until from interlock.session b where b.id = (l.line[cardinality(l.line) - 1]).session), us) - us, 0) end,
        cardinality(l.line) = 2) end,
      interlock.tell(s.channel, (l.line[1]).id, (l.line[1]).fence) into answer, told;
    if p_id is not null and interlock.us() > p_deadline then -- the row was waited for
      raise lock_not_available using message = 'the request was late';
    end if;
  end if;
  if answer is not null then
    return answer;
  end if;
  -- Others stand there, or stood. What this block declares costs nothing above.
  declare
    stands interlock.lock;
    c interlock.claim;
    ln interlock.claim[] := '{}';
    dead text[];
    total bigint := 0;
    alive bigint;
    there boolean := false;
    misfit boolean := false;
    was boolean := false;
    state int := 0;
    place record;
    way json;
  begin
    select * into stands from interlock.lock l where l.name = p_name for update;
    if not found and p_id is not null and not p_again then
      insert into interlock.lock values (p_name, 0, '{}') on conflict do nothing;
      select * into strict stands from interlock.lock l where l.name = p_name for update;
    end if;
    us := interlock.us(); -- the row may have been waited for

    if p_id is not null then
      if us > p_deadline then
        return '7 f ' || us;
      end if;
      select s.until - us - case when p_again and not p_queue then 1 else s.ttl - s.ttl / 10 end into alive from interlock.session s where s.id = p_session;
      if alive is null or alive < 0 then -- behind the row of the line: who renews holds no other
        update interlock.session s set until = us + s.ttl where s.id = p_session and s.until > us;
        if not found then
          return '6 f';
        end if;
      end if;
    end if;

    dead := interlock.bury(stands.line, us);
    foreach c in array coalesce(stands.line, '{}') loop
      if c.session = any (dead) or c.broken and c.stop <= us then
        continue;
      end if;
      if c.id = p_old then
        was := c.held and not c.broken;
        continue;
      end if;
      there := there or c.id = p_id;
      misfit := misfit or (c.kind = 4) <> (p_kind = 4);
      total := total + c.weight;
      ln := ln || c;
    end loop;
    if p_old is not null and not was then
      update interlock.session s set broken = array_remove(s.broken, p_old) where s.id = p_session and p_old = any (s.broken);
    end if;

    if p_id is not null and not there then
      if p_again then
        select case when p_id = any (s.broken) then 3 else 4 end into state from interlock.session s where s.id = p_session;
      elsif misfit then
        state := 5;
      elsif p_queue or total + p_weight <= p_lim then
        ln := ln || row(p_id, p_session, p_kind, p_weight, p_lim, false, false, 0, us, 0, p_passes, p_note)::interlock.claim;
        there := true;
      end if;
    end if;
    ln := interlock.settle(stands, ln, us, p_id);
    select * into place from interlock.place(ln, p_id, us);
    if not there then
      place.state := coalesce(state, 6);
    end if;
    if p_id is not null and place.state <= 1 then
      select interlock.seen(ln[1], s) into way from interlock.session s where s.id = (ln[1]).session and s.until > us;
    end if;
    return concat_ws(' ', place.state, was, place.fence, place.left_us, place.head, way);
  end;
end $$;

-- leave takes claims that give up together out of a line, and answers of each whether it was held until now. The line is looked at once for all.
create function interlock.leave(p_name bytea, p_sessions text[], p_olds text[], p_patience int) returns boolean[] language plpgsql as $$
declare
  set text := interlock.careful(p_patience);
  us bigint;
  stands interlock.lock;
  c interlock.claim;
  ln interlock.claim[] := '{}';
  dead text[];
  n int;
  was boolean[] := array_fill(false, array[cardinality(p_olds)]);
begin
  select * into stands from interlock.lock l where l.name = p_name for update;
  us := interlock.us();
  dead := interlock.bury(stands.line, us);
  foreach c in array coalesce(stands.line, '{}') loop
    n := array_position(p_olds, c.id);
    if c.session = any (dead) or c.broken and c.stop <= us then
      continue;
    elsif n is not null then
      was[n] := c.held and not c.broken;
      continue;
    end if;
    ln := ln || c;
  end loop;
  update interlock.session s set broken = array(select b from unnest(s.broken) b where b <> all (p_olds)) where s.id = any (p_sessions) and s.broken && p_olds;
  perform interlock.settle(stands, ln, us, null);
  return was;
end $$;

-- renew renews a session and answers how each of its claims stands that is not held as it was known to be: its number in the
-- arguments, and the state as in turn. Of a session that is over the only answer is state 6, of one that lives the first is
-- state 0 with the time in place of a token. The rows of lines are only read: nobody is waited for.
create function interlock.renew(p_session text, p_names text[], p_ids text[], p_held boolean[], p_patience int)
returns table (n bigint, state int, fence bigint, left_us bigint, head boolean) language plpgsql as $$
declare
  set text := interlock.careful(p_patience);
  us bigint;
  gone text[];
begin
  update interlock.session s set until = interlock.us() + s.ttl where s.id = p_session and s.until > interlock.us() returning s.broken into gone;
  if not found then
    return query select 0::bigint, 6, 0::bigint, 0::bigint, false;
    return;
  end if;
  us := interlock.us();
  return query
    select 0::bigint, 0, us, 0::bigint, false
    union all
    select k.n, case when p.state = 4 and k.id = any (gone) then 3 else p.state end, p.fence, p.left_us, p.head
      from unnest(p_names, p_ids, p_held) with ordinality as k(name, id, held, n)
      left join interlock.lock l on l.name = decode(k.name, 'hex')
      cross join lateral interlock.place(coalesce(l.line, '{}'), k.id, us) p
      where (k.held and (l.line[1]).id = k.id and (l.line[1]).held and not (l.line[1]).broken) is not true -- most are; the rest costs more
        and not (k.held and p.state = 2);
end $$;

-- finish ends a session: it leaves the lines of p_names, or where that is null every line, and hands over. The row of the session goes last,
-- since who looks at a line wants it after that of the line. By hand, to end somebody else's: select interlock.finish('ID').
create function interlock.finish(p_session text, p_names text[] default null) returns void language plpgsql as $$
declare
  set text := interlock.careful(10000);
  v_name bytea;
  stands interlock.lock;
  c interlock.claim;
  ln interlock.claim[];
begin
  for v_name in
    select decode(n, 'hex') from unnest(p_names) n
    union select l.name from interlock.lock l where p_names is null and exists (select from unnest(l.line) u where u.session = p_session)
    order by 1
  loop
    select * into stands from interlock.lock l where l.name = v_name for update;
    ln := '{}';
    foreach c in array coalesce(stands.line, '{}') loop
      if c.session <> p_session then
        ln := ln || c;
      end if;
    end loop;
    perform interlock.settle(stands, ln, interlock.us(), null);
  end loop;
  delete from interlock.session where id = p_session;
end $$;

-- break takes a claim away from its owner: a waiting one and, with p_now, a held one goes at once; otherwise it is marked, and goes
-- when it is released or when its session's time of now is over. Whether it was there as p_public and p_fence name it is the answer.
create function interlock.break(p_name bytea, p_public text, p_fence bigint, p_now boolean) returns boolean language plpgsql as $$
declare
  set text := interlock.careful(10000);
  us bigint;
  stands interlock.lock;
  c interlock.claim;
  ln interlock.claim[] := '{}';
  hit interlock.claim;
begin
  select * into stands from interlock.lock l where l.name = p_name for update;
  us := interlock.us();
  foreach c in array coalesce(stands.line, '{}') loop
    if interlock.public(c.id) = p_public and c.fence = p_fence then
      hit := c;
      if p_now or not c.held then
        continue;
      elsif not c.broken then
        c.broken := true;
        select s.until into c.stop from interlock.session s where s.id = c.session;
        c.stop := coalesce(c.stop, us);
      end if;
    end if;
    ln := ln || c;
  end loop;
  if hit.id is null then
    return false;
  end if;
  perform interlock.settle(stands, ln, us, null);
  update interlock.session s set broken = s.broken || hit.id where s.id = hit.session and not hit.id = any (s.broken);
  perform interlock.again(s.channel, hit.id) from interlock.session s where s.id = hit.session;
  return true;
end $$;

-- Tokens of locks that are no rows of ours: those in a program's own transaction, and of techniques session and rowlock. What nextval has given
-- it never gives again, whatever is rolled back.
create sequence interlock.token increment 32 maxvalue 9007199254740960;
select setval('interlock.token', (extract(epoch from clock_timestamp()) * 1000000)::bigint);

-- advance goes beyond what may have been given and lost: a crash forgets what no commit had flushed, a standby whatever it had not got. Nothing
-- is given that is ahead of the clock, unless that was set back. What lies little behind is drawn, since to set it could take back what others draw meanwhile.
create function interlock.advance() returns void language plpgsql as $$
declare
  us bigint := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
begin
  if (select last_value < us - 1000000 from interlock.token) then
    begin
      perform pg_advisory_xact_lock(7310868735408894829); -- nobody sets it back
      perform setval('interlock.token', us) from interlock.token where last_value < us - 1000000;
      raise exception using errcode = 'IL001'; -- this gives back the lock at once, not with the caller's transaction, and takes back no setval
    exception when sqlstate 'IL001' then null;
    end;
  end if;
  perform nextval('interlock.token') from generate_series(1, (select case when us > last_value then least((us - last_value) / 32 + 1, 31251) else 64 end from interlock.token));
end $$;

-- One row a name that was locked in a program's own transaction, or by technique rowlock. Every turn of the former changes it, so that whoever reads by an older snapshot
-- gets an error, and not the lock.
create table interlock.held (
  name bytea primary key,
  turns bigint not null
) with (fillfactor = 40);

-- hold locks a name until the transaction ends, if that has the isolation level p_level and may write; else fence is null.
create function interlock.hold(p_name bytea, p_level text, out level text, out readonly boolean, out fence bigint) language plpgsql as $$
begin
  level := replace(current_setting('transaction_isolation'), 'uncommitted', 'committed'); -- they are one level here
  readonly := current_setting('transaction_read_only')::boolean;
  if level = p_level and not readonly then
    insert into interlock.held as h values (p_name, 1) on conflict (name) do update set turns = h.turns + 1;
    fence := nextval('interlock.token');
  end if;
end $$;
