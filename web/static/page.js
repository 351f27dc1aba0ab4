"use strict";
// What a page does beyond showing itself: it follows its stream, counts times on, and has a few keys. Every page is complete without it.
(() => {
  const policy = window.trustedTypes
    ? trustedTypes.createPolicy("interlock", { createHTML: (s) => s }) // what comes is made by the server's templates
    : { createHTML: (s) => s };
  const parse = (html) => new DOMParser().parseFromString(policy.createHTML(html), "text/html");
  const by = (id) => document.getElementById(id);

  // Times: the server says what time it is with all that it sends.
  let offset = 0;
  const clock = (now) => { offset = now - Date.now(); };
  const words = (ms) => {
    const s = Math.floor(ms / 1000);
    if (ms < 0) return "0 s";
    if (s < 60) return s + " s";
    if (s < 3600) return Math.floor(s / 60) + " min " + (s % 60) + " s";
    if (s < 86400) return Math.floor(s / 3600) + " h " + (Math.floor(s / 60) % 60) + " min";
    return Math.floor(s / 86400) + " d " + (Math.floor(s / 3600) % 24) + " h";
  };
  const tick = () => {
    const now = Date.now() + offset;
    for (const t of document.querySelectorAll("time[data-since]")) t.textContent = words(now - t.dataset.since);
    for (const t of document.querySelectorAll("time[data-until]")) t.textContent = words(t.dataset.until - now);
  };

  // merge makes the children of one element those of another. Whoever has the same key and shows the same stays as it is.
  const merge = (into, from) => {
    const has = new Map([...into.children].map((c) => [c.dataset.key, c]));
    const focused = document.activeElement && document.activeElement.closest("[data-key]");
    const key = focused && into.contains(focused) ? focused.dataset.key : null;
    let at = into.firstElementChild;
    for (const c of [...from.children]) {
      let own = has.get(c.dataset.key);
      has.delete(c.dataset.key);
      if (own && own.dataset.v !== c.dataset.v) {
        const next = document.importNode(c, true);
        if (at === own) at = next;
        own.replaceWith(next);
        own = next;
      }
      own = own || document.importNode(c, true);
      if (own === at) at = at.nextElementSibling;
      else into.insertBefore(own, at);
    }
    for (const c of has.values()) c.remove();
    if (key !== null && !into.contains(document.activeElement)) {
      const again = [...into.children].find((c) => c.dataset.key === key);
      const link = again && again.querySelector("a");
      if (link) link.focus({ preventScroll: true });
    }
  };

  // say tells a screen reader one sentence, at most every five seconds; of several the last.
  let said = "", next = "", telling = 0;
  const say = (text) => {
    next = text;
    if (telling || next === said) return;
    said = by("told").textContent = next;
    telling = setTimeout(() => { telling = 0; say(next); }, 5000);
  };

  const trouble = (text, link = "") => {
    const t = by("trouble");
    if (t.textContent === text + link) return;
    t.textContent = text;
    if (link) {
      const a = document.createElement("a");
      a.href = location.href;
      a.textContent = link;
      t.append(a);
    }
    t.className = text ? "trouble" : "";
    t.hidden = !text;
    by("main").classList.toggle("old", !!text);
  };

  // replace puts one element in the place of another. Where the keys went to a link, they go to the same of the new one.
  const replace = (old, now) => {
    const i = [...old.querySelectorAll("a")].indexOf(document.activeElement);
    old.replaceWith(now);
    const link = i < 0 ? undefined : now.querySelectorAll("a")[i];
    if (link) link.focus({ preventScroll: true });
  };

  const show = (html) => {
    const from = parse(html).getElementById("live"), into = by("live");
    if (!from || !into) return;
    const parts = [...from.querySelectorAll("[id]")], own = [...into.querySelectorAll("[id]")];
    if (parts.map((p) => p.id).join() === own.map((p) => p.id).join()) {
      parts.forEach((p, i) => {
        if ("keyed" in p.dataset) merge(own[i], p);
        else if (own[i].innerHTML !== p.innerHTML) replace(own[i], document.importNode(p, true));
      });
    } else {
      into.replaceChildren(...[...from.childNodes].map((n) => document.importNode(n, true)));
    }
    const now = from.querySelector("[data-now]");
    if (now) clock(Number(now.dataset.now));
    const told = from.querySelector("[data-say]");
    if (told) say(told.textContent.trim());
    trouble("");
    tick();
  };

  // The stream, while somebody can see the page: a browser has six connections to a server.
  let source = null, again = 0;
  const open = () => {
    clearTimeout(again);
    if (source || !document.body.dataset.live || document.hidden) return;
    const s = source = new EventSource(document.body.dataset.live);
    s.addEventListener("page", (e) => show(e.data));
    s.addEventListener("same", (e) => {
      const d = JSON.parse(e.data), at = document.querySelector("time[data-at]");
      clock(d.now);
      if (at) at.dataset.since = d.at;
      trouble("");
    });
    s.onerror = () => {
      if (s.readyState === EventSource.CLOSED) {
        close();
        refused();
      } else {
        trouble(away); // the browser tries again
      }
    };
  };
  const away = "There is no connection to this server. What is shown is old; it comes back by itself.";
  // refused finds out what the server has against the stream, which an EventSource does not tell, and opens it again later.
  const refused = async () => {
    const status = await fetch(document.body.dataset.live, { method: "HEAD" }).then((r) => r.status, () => 0);
    clearTimeout(again);
    again = setTimeout(open, status === 401 || status === 403 ? 30000 : 5000); // somebody may log in by another page
    if (status === 401) trouble("Your login is over. What is shown is old. ", "Log in");
    else if (status === 403) trouble("You may look at this no longer. What is shown is old. ", "Load the page again");
    else if (status === 429) trouble("There are too many pages open on this server. What is shown is old; it goes on when others are closed.");
    else if (!source) trouble(away);
  };
  const close = () => {
    if (source) source.close();
    source = null;
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);

  // The theme, which the browser keeps.
  const themes = ["system", "light", "dark"];
  const stored = () => { try { return localStorage.getItem("interlock-theme"); } catch { return null; } };
  let theme = themes.includes(stored()) ? stored() : "system";
  const button = document.createElement("button");
  button.type = "button";
  const paint = () => {
    document.documentElement.dataset.theme = theme;
    button.textContent = "Theme: " + theme;
  };
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("interlock-theme", theme); } catch { /* it is kept until the page is left */ }
    paint();
  });
  paint();
  document.querySelector("header").append(button);

  // Keys: / goes to the search, j and k go through the rows, Escape leaves the search.
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const find = by("find");
    if (e.target.matches("input, textarea, select")) {
      if (e.key === "Escape") e.target.blur();
      return;
    }
    if (e.key === "/" && find) {
      find.focus();
      e.preventDefault();
    } else if (e.key === "j" || e.key === "k") {
      const links = [...document.querySelectorAll("tbody th a")];
      const i = links.indexOf(document.activeElement) + (e.key === "j" ? 1 : -1);
      if (links.length) links[Math.min(Math.max(i, 0), links.length - 1)].focus();
    }
  });

  const now = document.querySelector("[data-now]");
  if (now) clock(Number(now.dataset.now));
  const told = document.querySelector("[data-say]");
  if (told) said = told.textContent.trim(); // the page itself was read
  tick();
  setInterval(tick, 1000);
  open();
})();
