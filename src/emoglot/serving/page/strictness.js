// Strictness: a step of the slider as a requested precision, and in words.

const STEPS = [null, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95]; // the first uses the model's own thresholds

export const LAST = STEPS.length - 1;

export const precisionAt = (step) => STEPS[step];

/** `right at least 8 times in 10`. */
export function inWords(precision) {
  if (precision === null) return "balanced";
  const twentieths = Math.round(20 * precision);
  const [times, of] = twentieths % 2 ? [twentieths, 20] : [twentieths / 2, 10];
  return `right at least ${times} times in ${of}`;
}

/** A note on the labels that are never predicted, out of `total`. */
export function neverInWords(never, total) {
  if (!never.length) return "";
  if (never.length === total) return "At this strictness no label is ever predicted.";
  const names = new Intl.ListFormat("en-GB").format(never);
  return `At this strictness ${names} ${never.length === 1 ? "is" : "are"} never predicted.`;
}
