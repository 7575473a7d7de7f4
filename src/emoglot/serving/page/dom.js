// Creates elements; text is always inserted as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export function drawing(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export const byId = (id) => document.getElementById(id);

/** Show an element with these words, or hide it if there are none. */
export function say(place, words) {
  place.textContent = words;
  place.hidden = !words;
}

/** The colour of an emotion; style.css defines those of the wheel, any other is grey. */
export const hue = (label) => `var(--emotion-${CSS.escape(label)}, var(--other))`;

export const two = (score) => score.toFixed(2);

/** `3 texts`, `1 text`. */
export const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
