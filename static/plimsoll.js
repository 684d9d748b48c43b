// What needs a script: copying, keys, and errors of partial updates. Every page works without.
"use strict";

document.documentElement.classList.add("js");

const keys = document.getElementById("keys");
const find = document.getElementById("find");
const keysOn = document.getElementById("keys-on");
const toasts = document.getElementById("toasts");

// Plain http has no clipboard API, and inner networks often have only that.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "sr";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.copyText !== undefined) {
    await copy(button.closest(".payload").querySelector("pre").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  } else if (button.dataset.copy !== undefined) {
    await copy(button.dataset.copy);
    button.classList.add("done");
    button.title = "Copied";
    setTimeout(() => {
      button.classList.remove("done");
      button.title = "Copy";
    }, 1500);
  } else if (button.dataset.pickAll !== undefined) {
    for (const pick of document.querySelectorAll("input[form=bulk][name=run]")) pick.checked = true;
  } else if (button.dataset.keys !== undefined) {
    keys.showModal();
  } else if (button.dataset.close !== undefined) {
    button.closest(".toast, .opened").remove();
  }
});

// The address may have changed since the page was served.
for (const form of document.querySelectorAll("form.theme, .zone form")) {
  form.addEventListener("submit", () => {
    form.elements.back.value = location.pathname + location.search;
  });
}

// A bundle may be dropped on its form instead of being looked for.
const drop = document.querySelector("form[data-drop]");
drop?.addEventListener("dragover", (event) => event.preventDefault());
drop?.addEventListener("drop", (event) => {
  event.preventDefault();
  if (!event.dataTransfer.files.length) return;
  drop.elements.file.files = event.dataTransfer.files;
  drop.requestSubmit();
});

// The browser knows its own zone and the names of the others.
const zone = document.querySelector("details.zone");
zone.addEventListener("toggle", () => {
  const names = document.getElementById("zone-names");
  if (names.children.length > 0) return;
  names.append(...Intl.supportedValuesOf("timeZone").map((name) => new Option(name, name)));
});
const own = zone.querySelector("[data-browser-zone]");
own.value = Intl.DateTimeFormat().resolvedOptions().timeZone;
own.textContent = `browser: ${own.value}`;

// Moves the focus to the next of these rows, or to the first one after what has it now. A row's
// own link takes it, so that Enter opens as it always does. False where there is no next one.
const ROW = "table.rows tr:has(a.go), .lane:has(> a.lane-name[href]), .part-body tbody[id], .part-body tr[id]";
const chosenRow = () => document.querySelector("tr.chosen");
function step(rows, by) {
  const seen = rows.filter((row) => row.checkVisibility());
  const nowhere = document.activeElement === document.body;
  const here = nowhere ? chosenRow() : (document.activeElement.closest(ROW) ?? document.activeElement);
  let to = seen.indexOf(here) + by;
  if (!seen.includes(here)) {
    const after = here ? seen.findIndex((row) => here.compareDocumentPosition(row) & Node.DOCUMENT_POSITION_FOLLOWING) : -1;
    to = after < 0 ? (by > 0 ? 0 : seen.length - 1) : by > 0 ? after : after - 1;
  }
  const row = seen[to];
  if (!row) return false;
  const stop = row.querySelector("a.lane-name, a.go, a.kind") ?? row.querySelector("summary, a[href]") ?? row;
  if (stop === row) stop.tabIndex = -1;
  stop.focus();
  return true;
}

// j and k go from row to row.
const move = (by) => step([...document.querySelectorAll(ROW)], by);

// Brackets go from failure to failure as time goes, whichever way the events are listed, and on
// to those that are not on this page.
function toFailure(by) {
  // An event that an exception was told by already is not met again in the history.
  const met = new Set();
  const marks = [...document.querySelectorAll("[data-failure]")].filter((mark) => {
    if (!mark.hash?.startsWith("#event-")) return true;
    return !met.has(mark.hash) && met.add(mark.hash);
  });
  const rows = marks.map((mark) => mark.closest(ROW));
  const newest = rows.filter((row) => row?.closest("[data-newest-first]"));
  const inTime = [...rows.filter((row) => row && !newest.includes(row)), ...newest.reverse()];
  if (!step(inTime, by)) document.querySelector(by > 0 ? "[data-later-failure]" : "[data-earlier-failure]")?.click();
}

// g and a letter go to a page of the menu.
let going = 0;
function goTo(key) {
  const soon = Date.now() - going < 1500;
  going = 0;
  const link = soon && document.querySelector(`.nav a[data-key="${CSS.escape(key)}"]`);
  if (link) link.click();
  return Boolean(link);
}

// The filter form and the zones lie over the page: they must not cover what has the focus.
function closeOver(but) {
  const open = [...document.querySelectorAll("details.filters[open]:not(.stay), details.zone[open]")];
  const over = open.filter((details) => details !== but);
  for (const details of over) details.open = false;
  return over[0];
}
for (const name of ["focusin", "pointerdown"]) {
  document.addEventListener(name, (event) => closeOver(event.target.closest("details.filters, details.zone")));
}

// Single keys get in the way of speech input, so they can be turned off.
keysOn.checked = localStorage.getItem("plimsoll-keys") !== "off";
keysOn.addEventListener("change", () => {
  localStorage.setItem("plimsoll-keys", keysOn.checked ? "on" : "off");
});

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "Escape" && event.target === find) return find.blur();
  if (event.key === "Escape" && !keys.open) return closeOver()?.querySelector("summary").focus();
  if (typing || keys.open || !keysOn.checked || event.ctrlKey || event.metaKey || event.altKey) return;
  if (going && goTo(event.key)) return event.preventDefault();
  const act = {
    g: () => (going = Date.now()),
    "[": () => toFailure(-1),
    "]": () => toFailure(1),
    "/": () => find?.focus(),
    e: () => document.querySelector("[data-key-press=e]")?.click(),
    "?": () => keys.showModal(),
    j: () => move(1),
    k: () => move(-1),
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// Pointing at a run of the list tells why it is where it is.
const peek = document.getElementById("peek");
let peeking = 0;
function unpeek(event) {
  clearTimeout(peeking);
  if (event?.relatedTarget?.closest?.("#peek")) return;
  if (peek?.matches(":popover-open")) peek.hidePopover();
}
function peekSoon(event) {
  const link = event.target.closest?.("a[data-card]");
  if (!link || !peek) return;
  clearTimeout(peeking);
  peeking = setTimeout(async () => {
    const answer = await fetch(link.dataset.card, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (!answer?.ok || !(link.matches(":hover") || document.activeElement === link)) return;
    peek.innerHTML = await answer.text();
    peek.showPopover();
    const at = link.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = peek;
    // Beside the link, so that neither its row's id nor those below are covered; below or above it
    // where there is no room for that.
    const beside = at.right + width + 8 < innerWidth;
    const below = at.bottom + 6 + height < innerHeight ? at.bottom + 6 : at.top - height - 6;
    const top = beside ? Math.min(at.top, innerHeight - height - 8) : below;
    peek.style.left = `${beside ? at.right : Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
    peek.style.top = `${Math.max(8, top)}px`;
  }, 400);
}
if (peek) {
  document.addEventListener("mouseover", peekSoon);
  document.addEventListener("focusin", peekSoon);
  for (const name of ["mouseout", "focusout"]) {
    document.addEventListener(name, (event) => event.target.closest?.("a[data-card], #peek") && unpeek(event));
  }
  document.addEventListener("scroll", () => unpeek(), { passive: true });
  document.addEventListener("keydown", (event) => event.key === "Escape" && unpeek());
}

// The link that was followed is gone with the old list: go on at the new one, whose name says
// how many runs it holds.
document.addEventListener("htmx:afterSettle", (event) => {
  const next = { list: "results", events: "events" }[event.detail.target?.id];
  if (next) document.getElementById(next)?.focus({ preventScroll: true });
});

// The timeline is replaced where it stands: what was open in it stays open, and the focus stays
// on its link, or goes to the row whose details were closed.
let comeFrom = [];
document.addEventListener("htmx:configRequest", (event) => {
  // The anchor is for those without scripts: here it would move the page.
  if (event.detail.target?.id === "timeline") event.detail.path = event.detail.path.split("#")[0];
});
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target?.id !== "timeline") return;
  comeFrom = [document.activeElement.id, event.detail.target.querySelector(".lane.on > a")?.id];
});
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.target?.id !== "timeline" || document.activeElement !== document.body) return;
  const known = comeFrom.map((id) => id && document.getElementById(id)).find(Boolean);
  (known ?? document.querySelector("#timeline a.lane-name[href]"))?.focus({ preventScroll: true });
});

// A row of this page needs no new page, only what hides it opened.
function reveal(id) {
  const row = document.getElementById(id);
  for (let at = row; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  return row;
}
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  const ours = link?.hash && link.pathname === location.pathname && new URLSearchParams(link.search).has("at");
  if (!ours || link.closest(".hist") || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (!reveal(decodeURIComponent(link.hash.slice(1)))) return;
  event.preventDefault();
  location.hash = link.hash;
});

// Asked for twice, an event's payload is put away again.
document.addEventListener("htmx:beforeRequest", (event) => {
  const below = event.detail.elt.closest(".hist tr")?.nextElementSibling;
  if (!below?.classList.contains("opened")) return;
  event.preventDefault();
  below.remove();
});

// The overview refreshes itself: every few seconds while somebody may be looking, seldom while
// hidden. What is on the screen stays until there is something better, and its age is shown.
const live = document.querySelector("[data-live]");
const LIVE_MS = 5000;
const HIDDEN_MS = 60000;
let drawn = performance.now();
let asked = performance.now();

function setLost(isLost) {
  const [note, known] = ["lost", "known"].map((name) => live.querySelector(`[data-${name}]`));
  if (note) note.hidden = !isLost;
  // What it said may be true no more.
  if (known) known.hidden = isLost;
}
function ageText(ms) {
  const s = Math.round(ms / 1000);
  if (s < 90) return `${s} s`;
  return s < 5400 ? `${Math.round(s / 60)} m` : `${Math.round(s / 3600)} h`;
}
if (live) {
  setInterval(() => {
    const now = performance.now();
    const age = live.querySelector("[data-age]");
    if (age) age.textContent = `measured ${ageText(Number(age.dataset.age) + now - drawn)} ago`;
    if (now - asked < (document.hidden ? HIDDEN_MS : LIVE_MS)) return;
    asked = now;
    htmx.trigger(live, "refresh");
  }, 1000);
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target === live) drawn = performance.now();
  });
}

// What was open in a part of the page stays open when the part is replaced.
let opened = [];
document.addEventListener("htmx:beforeSwap", (event) => {
  const { target } = event.detail;
  opened = [...(target?.querySelectorAll("details[open][id]") ?? [])].map((details) => details.id);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const id of opened.splice(0)) document.getElementById(id)?.setAttribute("open", "");
});

// An error of ours says where it wants to be shown; anything else (a proxy's page, no answer at
// all) must not replace what is on the screen.
function lost() {
  const toast = document.createElement("div");
  toast.className = "toast notice is-fail";
  toast.setAttribute("role", "alert");
  toast.innerHTML = "<div><b>No answer</b><p>This page may be out of date.</p></div>";
  const close = document.createElement("button");
  close.type = "button";
  close.className = "quiet";
  close.dataset.close = "";
  close.textContent = "Close";
  toast.append(close);
  toasts.replaceChildren(toast);
}
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, target, pathInfo } = event.detail;
  if (xhr.status < 400) {
    if (target === live && !xhr.responseText.includes("data-age")) {
      event.detail.shouldSwap = false;
      setLost(true);
    }
    // No page of ours: perhaps a proxy asks who is there. That needs the whole window.
    if (["list", "events", "timeline"].includes(target.id) && !xhr.responseText.includes(`id="${target.id}"`)) {
      event.detail.shouldSwap = false;
      location.assign(pathInfo.requestPath);
    }
    return;
  }
  if (target === live) {
    event.detail.shouldSwap = false;
    return setLost(true);
  }
  if (xhr.getResponseHeader("HX-Retarget") || xhr.status === 422) event.detail.shouldSwap = true;
  else lost();
});
// A page that lives by itself says so in place; a toast every few seconds would help nobody.
const unlessLive = (event) => {
  if (live?.contains(event.target)) setLost(true);
  else lost();
};
document.addEventListener("htmx:sendError", unlessLive);
document.addEventListener("htmx:timeout", unlessLive);
