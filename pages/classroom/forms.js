// Forms, sections and links of the page. What people typed goes in through textContent alone.

/** The address of a page of the app, told from its own place: where it is served, this page has one name more. */
function withinApp(href) {
  return `${window.location.origin}${window.location.pathname.replace(/[^/]*$/, "")}${href}`;
}

/** A link within the app, or to the web, which then hears nothing of this page. */
function anchor(words, href, props = {}) {
  const outside = /^https?:/.test(href);
  return el("a", { href: outside ? href : withinApp(href), target: "_blank", rel: "noopener noreferrer", ...props }, words);
}

function field(label, props = {}) {
  const input = el("input", { class: "field", type: "text", autocomplete: "off", ...props });
  return { input, node: el("label", { class: "labelled" }, el("span", {}, label), input) };
}

/** A form that sends once, by Enter or its button. */
function form(words, send, ...children) {
  const button = el("button", { class: "primary", type: "submit" }, words);
  return el("form", { onsubmit: (event) => { event.preventDefault(); send(); } }, ...children, button);
}

/** A text to be copied: it is shown whole, for where copying is not allowed. */
function copied(label, text) {
  const input = el("input", { class: "field", type: "text", readonly: true, value: text, "aria-label": label, onfocus: () => input.select() });
  const button = el("button", { type: "button", class: "small" }, "Copy");
  button.addEventListener("click", () => {
    input.select();
    const done = () => { button.textContent = "Copied"; };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, () => document.execCommand("copy") && done());
    else if (document.execCommand("copy")) done();
  });
  return el("div", { class: "copied" }, input, button);
}

/** A button that asks once more, in its own place, before it does what cannot be undone. */
function careful(words, question, act) {
  const button = el("button", { type: "button", class: "small danger" }, words);
  let asked = false;
  button.addEventListener("click", () => {
    if (asked) return act();
    asked = true;
    button.textContent = question;
    setTimeout(() => { asked = false; button.textContent = words; }, 6000);
  });
  return button;
}

function timesAsFast(speed_up) {
  return speed_up ? ratio(speed_up) : "";
}
