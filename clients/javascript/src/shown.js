// Formats a value of any type for an error message.

/** @param {unknown} value */
export function shown(value) {
  try {
    return (typeof value === "string" ? JSON.stringify(value) : `${Object.prototype.toString.call(value)} ${typeof value}`).slice(0, 80);
  } catch {
    return `a ${typeof value}`; // the value's own code, such as that of a proxy
  }
}

/** Options and settings are plain objects: of a list, a map or a promise nothing would be read, in silence. @param {unknown} value */
export function isPlainObject(value) {
  return Object.prototype.toString.call(value) === "[object Object]";
}
