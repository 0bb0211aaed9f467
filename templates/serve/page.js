// The page of `tavern serve`: it shows what it is told of, as text. Nothing that it is told becomes markup.
"use strict";

const byId = (id) => document.getElementById(id);

/** An element with a class, and with words or other elements in it. */
function el(name, className, ...inner) {
  const node = document.createElement(name);
  if (className) node.className = className;
  node.append(...inner.filter((part) => part !== "" && part !== null && part !== undefined));
  return node;
}

/** Words of anybody's, whose direction is their own. */
const own = (words, className) => el("bdi", className, words);

const shows = (id, is) => { byId(id).hidden = !is; };

const known = new WeakMap();

/** Makes the children of `list` those of `values`: what has not changed stays as it is, and keeps the focus. */
function sync(list, values, key, make) {
  if (!known.has(list)) known.set(list, new Map());
  const entries = known.get(list), seen = new Set();
  values.forEach((value, place) => {
    let id = key(value);
    while (seen.has(id)) id += "#";
    seen.add(id);
    const json = JSON.stringify(value);
    let entry = entries.get(id);
    if (!entry || entry.json !== json) {
      const node = make(value);
      if (entry) {
        const had = entry.node.contains(document.activeElement);
        entry.node.replaceWith(node);
        if (had) (node.querySelector("button") || node).focus();
      }
      entry = { node, json };
      entries.set(id, entry);
    }
    const here = list.children[place];
    if (here !== entry.node) list.insertBefore(entry.node, here || null);
  });
  for (const [id, entry] of entries) {
    if (!seen.has(id)) {
      entry.node.remove();
      entries.delete(id);
    }
  }
}

// Times and numbers.

function took(seconds) {
  seconds = Math.max(0, Math.round(seconds));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

const since = (time) => (Date.now() - Date.parse(time)) / 1000;
const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
const money = (usd) => (usd > 0 ? `$${usd.toFixed(2)}` : "");

function moment(time) {
  const at = new Date(time);
  const is_today = at.toDateString() === new Date().toDateString();
  const day = is_today ? {} : { month: "short", day: "numeric" };
  const text = at.toLocaleString(undefined, { ...day, hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const node = el("time", "", text);
  node.dateTime = time;
  return node;
}

// What there is to see.

const COLUMNS = [
  ["To do", ["draft", "pending"]],
  ["At work", ["in_progress", "reviewing"]],
  ["In review", ["in_review", "approved"]],
  ["Waiting", ["waiting"]],
  ["Dead", ["dead"]],
  ["Done", ["completed", "cancelled"]],
];
const HUES = {
  in_progress: "busy", reviewing: "review", in_review: "review", approved: "review", waiting: "wait",
  dead: "bad", completed: "good",
};
const NEEDS = {
  answer: "asks", release: "needs a release", permission: "waits for your leave", approval: "waits for your approval",
  child: "has a child that failed", dead: "is dead", blocked: "is blocked", problem: "has a problem", merge: "waits to be merged",
};

/** Cards of a column that are shown at first. */
const FIRST = 100;

const state = { items: [], runs: [], leftOut: {}, needs: [], moreNeeds: 0, agents: [], queues: [], acts: false, isWhole: new Set(), last: 0 };

function button(words, className, name, tab) {
  const node = el("button", className, ...words);
  node.type = "button";
  node.addEventListener("click", () => openItem(name, tab));
  return node;
}

function drawHead(head) {
  state.queues = head.queues;
  byId("spent").textContent = head.spent || "";
  shows("spent", Boolean(head.spent));
  state.problems = head.problems;
  drawProblems();
  drawTiles();
}

function drawProblems() {
  const problems = [...(state.fault ? [state.fault] : []), ...(state.problems || [])];
  sync(byId("problems"), problems, (words) => words, (words) => el("li", "", own(words)));
  shows("problems", problems.length > 0);
}

function drawTiles() {
  const count = (...statuses) => state.queues.reduce(
    (sum, queue) => statuses.reduce((sum, status) => sum + (queue.items[status] || 0), sum), 0);
  const all = state.queues.reduce((sum, queue) => sum + Object.values(queue.items).reduce((a, b) => a + b, 0), 0);
  const over = count("completed", "cancelled"), dead = count("dead");
  const works = state.agents.filter((agent) => agent.alive && agent.state === "working").length;
  const needs = state.needs.length + state.moreNeeds;
  const tiles = [
    ["need you", needs, needs ? "wait" : ""],
    [works === 1 ? "agent works" : "agents work", works, works ? "busy" : ""],
    ["open", all - over - dead, ""],
    ["dead", dead, dead ? "bad" : ""],
    ["done", over, over ? "good" : ""],
  ];
  sync(byId("tiles"), tiles, ([name]) => name, ([name, number, tone]) =>
    el("div", tone, el("dt", "", name), el("dd", "", String(number))));
  document.title = `${needs ? `(${needs}) ` : ""}${byId("name").textContent} · Tavern`;
}

function nameOf(line) {
  return line.task || `${line.queue}:${line.line}`;
}

function drawNeeds({ needs, left_out: more }) {
  const before = new Set(state.needs.map(nameOf));
  state.needs = needs;
  state.moreNeeds = more;
  byId("more-needs").textContent = `… and ${more} more: tavern status`;
  shows("more-needs", more > 0);
  shows("no-needs", needs.length === 0);
  sync(byId("need-list"), needs, nameOf, (need) => {
    const name = nameOf(need);
    const item = el("li", ["child", "dead", "blocked", "problem"].includes(need.need) ? "bad" : "wait",
      el("p", "", button([own(name)], "", name), " ", el("span", "word", NEEDS[need.need] || "waits")));
    if (need.title) item.append(el("p", "", own(need.title)));
    const why = el("p", "why", need.why);
    why.dir = "auto";
    item.append(why);
    if (need.todo) item.append(el("p", "", el("code", "", need.todo)));
    return item;
  });
  const fresh = needs.filter((need) => !before.has(nameOf(need)));
  if (fresh.length) byId("told").textContent = fresh.slice(0, 3).map((need) => need.words).join(". ");
  drawTiles();
  drawOpenDeeds();
}

function drawAgents(agents) {
  state.agents = agents;
  shows("no-agents", agents.length === 0);
  sync(byId("agent-list"), agents, (agent) => agent.name, (agent) => {
    const works = agent.alive && agent.state === "working", now = agent.at_work;
    const isStale = works && agent.freshness !== "fresh";
    const mode = agent.mode && agent.mode !== "execute" ? agent.mode : "works";
    const word = !agent.alive ? "gone" : works ? (isStale ? "silent" : mode) : "waits";
    const item = el("li", !agent.alive || isStale ? "bad" : works ? "busy" : "idle");
    const top = el("p", "", own(agent.name, "id"), " ", el("span", "word", word));
    if (agent.task) top.append(" ", button([own(agent.task)], "", agent.task, "output"));
    item.append(top);
    if (now) {
      const line = el("p", "meta");
      line.dataset.began = now.began;
      line.dataset.rest = [now.tool || "thinks", count(now.steps, "step"), money(now.usd), now.nudges ? count(now.nudges, "nudge") : ""]
        .filter(Boolean).join(" · ");
      item.append(line);
    }
    const says = (now && now.said) || agent.doing;
    if (says) {
      const words = el("p", "says", says);
      words.dir = "auto";
      item.append(words);
    }
    return item;
  });
  drawSeconds();
  drawTiles();
  // Of what is not committed no event tells.
  if (opened && opened.tab === "work" && agents.some((agent) => agent.alive && agent.task === opened.task)) refresh();
}

function drawSeconds() {
  drawQuiet();
  for (const line of document.querySelectorAll("[data-began]")) {
    const words = `${took(since(line.dataset.began))} · ${line.dataset.rest}`;
    if (line.textContent !== words) line.textContent = words;
  }
}

function markOf(item) {
  if (item.quarantined) return "has a problem: tavern check";
  if (item.not_ready || item.waits_for) return item.not_ready || item.waits_for;
  if (item.next_for) return `next for ${item.next_for}`;
  return item.ready ? "ready" : "";
}

function card(item) {
  const hue = item.quarantined ? "bad" : HUES[item.status] || "idle";
  const steps = item.steps && item.steps.open.length ? ` · ${item.steps.done}/${item.steps.done + item.steps.open.length}` : "";
  const about = `${item.queue} · p${item.priority}${steps}`;
  const words = [
    el("span", "top", el("b", "", own(item.name), ` ${item.status.replace("_", " ")}`), own(about)),
    own((item.above || "") + item.title, "title"),
  ];
  words[1].dir = "auto";
  const mark = markOf(item);
  if (mark) words.push(own(mark, "mark"));
  return el("li", "", button(words, `card ${hue}`, item.name));
}

/** How many items of these statuses the page is not told of; of all without any. */
function leftOut(statuses = Object.keys(state.leftOut)) {
  return statuses.reduce((sum, status) => sum + (state.leftOut[status] || 0), 0);
}

function drawItems() {
  const wanted = byId("find").value.trim().toLowerCase();
  const is_wanted = (item) =>
    !wanted || `${item.name} ${item.title} ${item.queue} ${item.status}`.toLowerCase().includes(wanted);
  const items = state.items.filter(is_wanted);
  const columns = COLUMNS
    .map(([name, statuses]) => [name, items.filter((item) => statuses.includes(item.status)), wanted ? 0 : leftOut(statuses)])
    .filter(([name, cards]) => cards.length || !["Dead", "Waiting"].includes(name));
  shows("no-items", state.items.length === 0);
  shows("columns", state.items.length > 0);
  const place = byId("columns");
  const is_same = [...place.children].map((column) => column.dataset.name).join() === columns.map(([name]) => name).join();
  if (!is_same) {
    place.replaceChildren(...columns.map(([name]) => {
      const list = el("ul", "cards"), count = el("span", ""), heading = el("h3", "", name, count);
      const column = el("section", "column", heading, list);
      heading.id = `column-${name.replace(" ", "-")}`;
      column.setAttribute("aria-labelledby", heading.id);
      list.tabIndex = 0;
      list.setAttribute("aria-labelledby", heading.id);
      column.dataset.name = name;
      return column;
    }));
  }
  columns.forEach(([name, cards, others], at) => {
    const column = place.children[at], list = column.querySelector("ul");
    column.querySelector("span").textContent = String(cards.length + others);
    const most = state.isWhole.has(name) ? cards.length : FIRST;
    sync(list, cards.slice(0, most), (item) => item.name, card);
    column.querySelector(".plain")?.remove();
    if (cards.length > most) {
      const more = el("button", "plain", `Show all ${cards.length}`);
      more.type = "button";
      more.addEventListener("click", () => { state.isWhole.add(name); drawItems(); list.focus(); });
      column.append(more);
    }
  });
}

function drawRuns(runs) {
  state.runs = runs;
  followNext();
  shows("no-runs", runs.length === 0);
  shows("run-scroll", runs.length > 0);
  sync(byId("run-list"), runs, (run) => run.run, (run) => {
    const name = el("th", "", button([own(run.run)], "", run.run, "output"));
    name.scope = "row";
    const length = run.ended ? (Date.parse(run.ended) - Date.parse(run.started)) / 1000 : null;
    const why = el("td", "why", own(run.why));
    return el("tr", "", name, el("td", "", own(run.agent)), el("td", "w", moment(run.started)),
      el("td", "n", length === null ? "" : took(length)), el("td", "w", (run.outcome || (run.damaged ? "damaged" : "running")).replace("_", " ")),
      el("td", "n", money(run.usd)), why);
  });
}

function drawEvent(line) {
  state.last = Math.max(state.last, line.seq);
  const list = byId("event-list");
  if (list.querySelector(`[data-seq="${Number(line.seq)}"]`)) return;
  const item = el("li", "", moment(line.time), own(line.text));
  item.dataset.seq = line.seq;
  list.prepend(item);
  while (list.children.length > 200) list.lastChild.remove();
  shows("no-events", false);
  if (opened && line.task === opened.task && opened.tab !== "output") refresh();
}

// One item.

let opened = null, logs = null, asking = null, followed = "", drawn = "", isActing = false;

function itemNamed(name) {
  return state.items.find((item) => item.name === name || item.task === name);
}

function openItem(name, tab = "item") {
  const task = name.includes("@") ? name.slice(0, name.lastIndexOf("@")) : name;
  opened = { name, task, tab };
  const item = itemNamed(task);
  byId("dialog-name").textContent = name;
  byId("dialog-words").textContent = item ? item.title : "";
  byId("said").textContent = "";
  byId("words").value = "";
  if (!byId("dialog").open) byId("dialog").showModal();
  choose(tab);
  byId(`tab-${tab}`).focus();
}

function choose(tab) {
  opened.tab = tab;
  for (const name of ["item", "output", "work"]) {
    const is = name === tab, node = byId(`tab-${name}`);
    node.setAttribute("aria-selected", String(is));
    node.tabIndex = is ? 0 : -1;
  }
  byId("panel").setAttribute("aria-labelledby", `tab-${tab}`);
  byId("shown").replaceChildren();
  drawn = "";
  isFollowing = true;
  lastTop = 0;
  stop();
  drawOpenDeeds();
  if (tab === "output") follow(); else show();
}

/** What is open is asked for anew; what is being asked for is asked for once more when it is there, and never twice at once. */
function refresh() {
  if (asking) asking.isStale = true; else show();
}

async function show() {
  const { task, tab } = opened, own = { stop: new AbortController(), isStale: false };
  const url = `${tab === "work" ? "/work" : "/item"}?of=${encodeURIComponent(task)}`;
  asking = own;
  for (;;) {
    own.isStale = false;
    let told;
    try {
      const answer = await fetch(url, { signal: own.stop.signal });
      told = answer.ok ? await answer.json() : { fault: await answer.text() };
    } catch {
      told = { fault: "the program that serves this page does not answer" };
    }
    // Another was asked for meanwhile.
    if (asking !== own) return;
    drawShown(told, tab);
    await new Promise((done) => setTimeout(done, 500));
    if (asking !== own) return;
    if (!own.isStale) break;
  }
  asking = null;
}

function drawShown(told, tab) {
  const lines = told.lines || [told.fault];
  // What somebody has marked stays so.
  if (lines.join("\n") === drawn) return;
  drawn = lines.join("\n");
  const tones = { "+": "l-add", "-": "l-del", "@": "l-at" };
  const nodes = lines.map((line) => el("span", tab === "work" ? tones[line[0]] || "" : "", line));
  if (told.left_out) nodes.push(el("span", "l-faint", `… ${told.left_out} bytes are left out here; all of it: ${told.command}`));
  byId("shown").replaceChildren(...nodes);
}

function follow() {
  logs = new EventSource(`/stream?of=${encodeURIComponent(opened.name)}`);
  logs.addEventListener("run", (event) => {
    const { run } = JSON.parse(event.data);
    // Its item has begun another run.
    if (followed !== run) byId("shown").replaceChildren();
    followed = run;
    byId("dialog-name").textContent = run;
  });
  logs.addEventListener("gone", (event) => {
    byId("shown").replaceChildren(el("span", "l-faint", JSON.parse(event.data).why));
    stop();
  });
  logs.addEventListener("lines", (event) => {
    const shown = byId("shown");
    shown.append(...JSON.parse(event.data).map(([line, tone]) => el("span", tone ? `l-${tone}` : "", line)));
    while (shown.children.length > 5000) shown.firstChild.remove();
    drawQuiet();
    toEnd();
  });
}

/** Whether the end of the output stays in sight: until the reader scrolls up, and again from the end on. */
let isFollowing = true, lastTop = 0;

function toEnd() {
  const panel = byId("panel");
  if (isFollowing) panel.scrollTop = panel.scrollHeight;
  lastTop = panel.scrollTop;
}

byId("panel").addEventListener("scroll", () => {
  const panel = byId("panel"), left = panel.scrollHeight - panel.scrollTop - panel.clientHeight;
  // Lines and a note that appear move nothing up.
  if (panel.scrollTop < lastTop) isFollowing = false;
  if (left < 2) isFollowing = true;
  lastTop = panel.scrollTop;
});

/** What an item prints is that of its newest run, which stands first. */
function followNext() {
  if (!opened || opened.tab !== "output" || opened.name !== opened.task) return;
  const newest = state.runs.find((run) => run.task === opened.task);
  if (newest && newest.run !== followed) {
    stop();
    follow();
  }
}

/** Seconds after which a run that prints nothing is told of. */
const QUIET = 10;

/** The end of the run whose output is open, or that it prints nothing, and since when. */
function drawQuiet() {
  let words = "";
  if (logs && followed) {
    const run = state.runs.find((run) => run.run === followed);
    const agent = state.agents.find((agent) => agent.alive && agent.run === followed);
    const isEmpty = byId("shown").children.length === 0, last = agent && agent.last_output;
    if (isEmpty && agent) words = `It has printed nothing yet${run ? `; it began ${took(since(run.started))} ago` : ""}.`;
    else if (isEmpty && !(run && run.ended)) words = "It printed nothing.";
    else if (run && run.ended) {
      const outcome = (run.outcome || "unknown").replaceAll("_", " "), why = run.why ? `: ${run.why}` : "";
      words = `Ended after ${took((new Date(run.ended) - new Date(run.started)) / 1000)}: ${outcome}${why}`;
    }
    else if (last && since(last) >= QUIET) words = `It has printed nothing for ${took(since(last))}.`;
  }
  byId("quiet").textContent = words;
  shows("quiet", words !== "");
  // The note takes room from the output.
  if (logs) toEnd();
}

/** Nobody looks at it any more. */
function stop() {
  if (logs) logs.close();
  if (asking) asking.stop.abort();
  logs = asking = null;
  followed = "";
  drawQuiet();
}

/** The deeds that an item's status allows: what is sent, its label, and whether words are needed ("must"), may be said or mean nothing. */
function deedsFor(item, need) {
  const held = ["in_progress", "reviewing"].includes(item.status);
  const kind = need && need.need;
  const deeds = [];
  if (kind === "answer") deeds.push(["tell", "Answer", "must"]);
  if (kind === "permission") deeds.push(["approve", "Let it start", ""]);
  // Work is approved where its changes are in sight.
  else if (item.status === "in_review" || kind === "approval")
    deeds.push(opened.tab === "work" ? ["approve", "Approve and merge", ""] : ["look", "See the changes", ""]);
  if (["in_review", "approved"].includes(item.status)) deeds.push(["reject", "Reject", "must"]);
  if (item.status === "approved") deeds.unshift(["merge", "Merge", ""]);
  if (held) deeds.push(["tell", "Tell its agent", "must"], ["pause", "Pause", "may"]);
  if (item.status === "waiting" && kind !== "answer") deeds.push(["resume", "Let it go on", "may"]);
  if (["waiting", "draft"].includes(item.status) || kind === "release") deeds.push(["release", "Release", ""]);
  if (kind === "dead") deeds.push(["revive", "Try again", ""]);
  return deeds;
}

function drawOpenDeeds() {
  // What stands under the pointer stays while something is done.
  if (!opened || isActing) return;
  const item = itemNamed(opened.task), need = state.needs.find((need) => nameOf(need) === opened.task);
  byId("asked").textContent = need ? need.why : "";
  byId("todo").textContent = need && !state.acts ? `To type: ${need.todo}. To act from here: tavern serve --write` : "";
  shows("todo", byId("todo").textContent !== "");
  const deeds = state.acts && item && item.task ? deedsFor(item, need) : [];
  shows("act", deeds.length > 0);
  shows("words-label", deeds.some(([, , words]) => words));
  sync(byId("deeds"), deeds, ([deed]) => deed, ([deed, label, takes]) => {
    const node = el("button", "", label);
    node.dataset.takes = takes;
    node.type = "button";
    node.addEventListener("click", () => (deed === "look" ? choose("work") : act(deed, takes)));
    return node;
  });
  [...byId("deeds").children].forEach((node, at) => node.classList.toggle("main", at === 0));
}

/** What came of a deed. */
async function sent(deed, task, text) {
  try {
    const answer = await fetch("/do", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ deed, item: task, text }),
    });
    return answer.ok ? await answer.json() : { said: await answer.text(), done: false };
  } catch {
    return { said: "the program that serves this page does not answer", done: false };
  }
}

async function act(deed, takes) {
  const words = byId("words"), said = byId("said"), { task } = opened;
  if (takes === "must" && !words.value.trim()) {
    say("type a message first", false);
    words.focus();
    return;
  }
  const buttons = [...byId("deeds").children];
  buttons.forEach((node) => { node.disabled = true; });
  isActing = true;
  said.className = "";
  said.textContent = "…";
  const item = itemNamed(task), isOfWork = deed === "approve" && item && item.status === "in_review";
  let told = await sent(deed, task, takes ? words.value : "");
  // Another reviewer may have to approve it first: then it is not merged, which it says.
  if (isOfWork && told.done) {
    const merged = await sent("merge", task, "");
    if (merged.done) told = merged;
  }
  buttons.forEach((node) => { node.disabled = false; });
  isActing = false;
  drawOpenDeeds();
  if (!opened || opened.task !== task) return;
  // What was not said stays.
  if (told.done && takes) words.value = "";
  say(`${told.command ? `${told.command}: ` : ""}${told.said}`, told.done);
}

function say(words, isGood) {
  byId("said").className = isGood ? "good" : "bad";
  byId("said").textContent = words;
}

// The connection.

let source = null;

function link(words, tone) {
  byId("link").textContent = words;
  byId("link").className = `pill ${tone}`;
}

function connect() {
  if (source) source.close();
  source = new EventSource(state.last ? `/events?after=${state.last}` : "/events");
  const on = (name, draw) => source.addEventListener(name, (event) => draw(JSON.parse(event.data)));
  source.addEventListener("open", () => link("live", "good"));
  source.addEventListener("error", () => {
    const isOver = source.readyState === EventSource.CLOSED;
    link(isOver ? "closed: open the URL that tavern serve prints" : "not connected: is tavern serve running?", "bad");
    if (document.hidden) source.close();
  });
  on("hello", (hello) => {
    // Another board may be served here by now.
    if (state.instance && state.instance !== hello.instance) location.reload();
    state.instance = hello.instance;
    byId("name").textContent = hello.board;
    byId("mode").textContent = hello.acts ? "can act" : "read-only";
    state.acts = hello.acts;
    drawTiles();
  });
  on("fault", (fault) => {
    state.fault = fault;
    drawProblems();
    // It is the last part. A page that nobody sees was told what its title says, and goes.
    if (document.hidden) source.close();
  });
  on("head", drawHead);
  on("needs", drawNeeds);
  on("agents", drawAgents);
  on("items", (told) => {
    state.items = told.items;
    state.leftOut = told.left_out;
    byId("left-out").textContent = `${leftOut()} more are left out here; all of them: tavern list`;
    shows("left-out", leftOut() > 0);
    drawItems();
    drawOpenDeeds();
  });
  on("runs", drawRuns);
  on("log", drawEvent);
}

byId("find").addEventListener("input", drawItems);
byId("close").addEventListener("click", () => byId("dialog").close());
byId("dialog").addEventListener("close", () => {
  // It is told of a moment later: another item may be open by then.
  if (byId("dialog").open) return;
  opened = null;
  stop();
});
byId("act").addEventListener("submit", (event) => {
  event.preventDefault();
  // Enter says what was typed, and never approves.
  byId("deeds").querySelector("[data-takes=must]")?.click();
});
const TABS = ["item", "output", "work"];
TABS.forEach((tab, at) => {
  byId(`tab-${tab}`).addEventListener("click", () => choose(tab));
  byId(`tab-${tab}`).addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const next = TABS[(at + by + TABS.length) % TABS.length];
    choose(next);
    byId(`tab-${next}`).focus();
  });
});
document.addEventListener("visibilitychange", () => {
  // A page that nobody sees holds no connection, of which a browser has few. It asks now and then.
  if (document.hidden) {
    source.close();
    stop();
  } else {
    connect();
    if (opened) choose(opened.tab);
  }
});
setInterval(() => { if (!document.hidden) drawSeconds(); }, 1000);
// The title of a tab in the background counts what needs somebody.
setInterval(() => { if (document.hidden) connect(); }, 60_000);
connect();
