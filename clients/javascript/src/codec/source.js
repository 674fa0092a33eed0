// Finds the content of a message in its frame, so that its text is exactly what the publisher wrote.
//
// JSON.parse has read the frame before, so it is valid, and skipping strings and brackets is enough. Runs only when the text of
// JSON content is read that arrived in the JSON encoding.

/**
 * The text of the value of `key` in the object, or in the object at `place` of the array, that the frame is.
 * @param {string} frame
 * @param {number | null} place
 * @param {string} key
 */
export function sourceOf(frame, place, key) {
  let at = skipBlanks(frame, 0);
  if (place !== null) {
    at = skipBlanks(frame, at + 1);
    for (let index = 0; index < place; index++) at = skipBlanks(frame, skipBlanks(frame, valueEnd(frame, at)) + 1);
  }
  let source = "";
  at = skipBlanks(frame, at + 1);
  while (frame[at] !== "}") {
    const keyEnd = valueEnd(frame, at);
    const name = JSON.parse(frame.slice(at, keyEnd));
    const start = skipBlanks(frame, skipBlanks(frame, keyEnd) + 1);
    const end = valueEnd(frame, start);
    if (name === key) source = frame.slice(start, end); // the last of several counts, as for JSON.parse
    at = skipBlanks(frame, end);
    if (frame[at] === ",") at = skipBlanks(frame, at + 1);
  }
  return source;
}

/**
 * The texts of the elements of an array, or the one value that the frame is.
 * @param {string} frame
 */
export function elementsOf(frame) {
  if (!frame.startsWith("[")) return [frame];
  const elements = [];
  let at = skipBlanks(frame, 1);
  while (frame[at] !== "]") {
    const end = valueEnd(frame, at);
    elements.push(frame.slice(at, end));
    at = skipBlanks(frame, end);
    if (frame[at] === ",") at = skipBlanks(frame, at + 1);
  }
  return elements;
}

/**
 * @param {string} text
 * @param {number} at
 */
function skipBlanks(text, at) {
  while (text[at] === " " || text[at] === "\n" || text[at] === "\r" || text[at] === "\t") at++;
  return at;
}

/**
 * The end of the value that begins at `start`.
 * @param {string} text
 * @param {number} start
 */
function valueEnd(text, start) {
  let at = start;
  let depth = 0;
  do {
    const sign = text[at];
    if (sign === '"') {
      at = stringEnd(text, at);
      continue;
    }
    if (sign === "{" || sign === "[") depth++;
    else if (sign === "}" || sign === "]") depth--;
    else if (depth === 0) return scalarEnd(text, at);
    at++;
  } while (depth > 0);
  return at;
}

/**
 * @param {string} text
 * @param {number} start
 */
function stringEnd(text, start) {
  let at = start + 1;
  while (text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}

/**
 * @param {string} text
 * @param {number} start
 */
function scalarEnd(text, start) {
  let at = start;
  while (at < text.length && !",]} \n\r\t".includes(text[at] ?? "")) at++;
  return at;
}
