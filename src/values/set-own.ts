/** A key that V8 treats as an array index. The smallest indexes need little memory. */
const INDEX = /^[1-9]\d{1,9}$/;
/** The largest array index. */
const LAST_INDEX = 4_294_967_294;

/**
 * Sets a property with any name. An assignment to `__proto__` would change the prototype, and for a large index V8
 * would allocate all elements below it.
 */
export function setOwn<Value>(record: Record<string, Value>, name: string, value: Value): void {
  if (name === '__proto__') {
    Object.defineProperty(record, name, { value, enumerable: true, configurable: true, writable: true });
    return;
  }
  if (INDEX.test(name)) {
    keepSparse(record);
  }
  record[name] = value;
}

/**
 * Makes V8 store elements with index keys as a dictionary: otherwise they can take a thousand times the size of the
 * document. Setting an index far from all others has this effect, and it may be deleted again.
 */
function keepSparse(record: Record<string, unknown>): void {
  if (!Object.hasOwn(record, LAST_INDEX)) {
    record[LAST_INDEX] = null;
    delete record[LAST_INDEX];
  }
}
