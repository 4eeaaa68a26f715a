// Counts what functions of the language itself compare and make: coverage sees a call of them as one step, however long it takes.

let counted = 0;

/** Characters and items that were compared or made so far. */
export function nativeWork(): number {
  return counted;
}

function count(amount: number): void {
  counted += amount;
}

type Method = (this: unknown, ...args: unknown[]) => unknown;

/** Puts a function that counts before the method of this name; `after` sees the result as well. */
function counting(
  owner: object,
  name: PropertyKey,
  before: (self: unknown, args: readonly unknown[]) => number,
  after: (result: unknown, self: unknown) => number = () => 0,
): void {
  const method = Reflect.get(owner, name) as Method;
  const replacement = function (this: unknown, ...args: unknown[]): unknown {
    count(before(this, args));
    const result = Reflect.apply(method, this, args);
    count(after(result, this));
    return result;
  };
  Object.defineProperty(owner, name, { value: replacement, writable: true, configurable: true });
}

const lengthOf = (value: unknown): number =>
  typeof value === 'string' || Array.isArray(value) || ArrayBuffer.isView(value)
    ? ((value as { length?: number }).length ?? 0)
    : 0;
const ofSelf = (self: unknown): number => lengthOf(self);
const ofArgument = (_: unknown, [value]: readonly unknown[]): number => lengthOf(value);
const ofResult = (result: unknown): number => lengthOf(result);
const nothing = (): number => 0;

/** Parts up to here are counted as if each of their characters were compared at each position. */
const SHORT_PART = 16;

/** Characters that a search compares which tries one position after the other, as that of V8 does in the worst case. */
function comparedBySearch(text: string, part: string): number {
  if (part.length > text.length) {
    return 0;
  }
  if (part.length <= SHORT_PART) {
    return text.length;
  }
  return comparedAtAll(part, text);
}

/** For each position of the text how many characters equal the beginning of the part, and one more: by the Z function. */
function comparedAtAll(part: string, text: string): number {
  const all = part + text;
  const equal = new Uint32Array(all.length);
  let [left, right, compared] = [0, 0, 0];
  for (let at = 1; at < all.length; at += 1) {
    let same = at < right ? Math.min(right - at, equal[at - left] ?? 0) : 0;
    while (at + same < all.length && all.charCodeAt(same) === all.charCodeAt(at + same)) {
      same += 1;
    }
    equal[at] = same;
    if (at + same > right) {
      [left, right] = [at, at + same];
    }
    compared += at < part.length ? 0 : Math.min(same, part.length) + 1;
  }
  return compared;
}

/** A search of all of a text. */
const ofSearch = (self: unknown, [part]: readonly unknown[]): number =>
  typeof part === 'string' ? comparedBySearch(String(self), part) : 0;

const nativeIndexOf = Reflect.get(String.prototype, 'indexOf') as Method;

/** The language's own, which does not count. */
const ownIndexOf = (text: string, part: string, from: number): number =>
  Number(Reflect.apply(nativeIndexOf, text, [part, from]));

/** A search from a position up to the first match. */
function ofIndexOf(self: unknown, [part, from]: readonly unknown[]): number {
  const [text, start] = [String(self), Number(from ?? 0)];
  const found = ownIndexOf(text, String(part), start);
  return comparedBySearch(text.slice(start, found < 0 ? text.length : found + String(part).length), String(part));
}

/** Characters that a text and another one have in common at a position. */
function sameAt(text: string, at: number, part: string): number {
  let same = 0;
  while (same < part.length && text.charCodeAt(at + same) === part.charCodeAt(same)) {
    same += 1;
  }
  return same + 1;
}

function countTexts(): void {
  for (const name of ['indexOf', 'includes']) {
    counting(String.prototype, name, ofIndexOf);
  }
  for (const name of ['lastIndexOf', 'split', 'replace', 'replaceAll']) {
    counting(String.prototype, name, ofSearch, ofResult);
  }
  counting(String.prototype, 'startsWith', (self, [part, at]) => sameAt(String(self), Number(at ?? 0), String(part)));
  counting(String.prototype, 'endsWith', (self, [part]) => Math.min(lengthOf(self), lengthOf(part)));
  for (const name of [
    'toUpperCase',
    'toLowerCase',
    'normalize',
    'trim',
    'trimStart',
    'trimEnd',
    'toWellFormed',
    'isWellFormed',
  ]) {
    counting(String.prototype, name, ofSelf);
  }
  for (const name of ['repeat', 'padStart', 'padEnd', 'concat']) {
    counting(String.prototype, name, nothing, ofResult);
  }
}

function countLists(): void {
  for (const name of ['join', 'slice', 'concat', 'flat', 'toReversed', 'toSpliced', 'with']) {
    counting(Array.prototype, name, nothing, ofResult);
  }
  for (const name of ['includes', 'indexOf', 'lastIndexOf', 'reverse', 'shift', 'unshift', 'splice']) {
    counting(Array.prototype, name, ofSelf);
  }
  for (const name of ['sort', 'toSorted']) {
    counting(Array.prototype, name, (self) => lengthOf(self) * Math.log2(lengthOf(self) + 1));
  }
  counting(Array, 'from', nothing, ofResult);
}

function countOthers(): void {
  counting(RegExp.prototype, 'exec', nothing, ofMatch);
  counting(JSON, 'parse', ofArgument);
  counting(JSON, 'stringify', nothing, ofResult);
  counting(Buffer, 'from', ofArgument);
  counting(Buffer, 'byteLength', ofArgument);
  for (const name of ['indexOf', 'includes', 'lastIndexOf']) {
    counting(Buffer.prototype, name, ofSelf);
  }
  counting(Buffer.prototype, 'toString', nothing, ofResult);
  counting(globalThis, 'encodeURIComponent', ofArgument, ofResult);
  for (const name of ['keys', 'values', 'entries', 'fromEntries', 'assign']) {
    counting(Object, name, nothing, ofResult);
  }
  countBigNumbers();
}

/** What a regular expression read: up to the end of its match. Without one it may have read all, and is asked only once. */
function ofMatch(result: unknown): number {
  return Array.isArray(result) ? lengthOf(result[0]) + 1 : 1;
}

/** Digits are converted in more than linear time. */
function countBigNumbers(): void {
  const convert = BigInt;
  globalThis.BigInt = new Proxy(convert, {
    apply: (target, self, args: [string]) => {
      count(lengthOf(args[0]) ** 1.5);
      return Reflect.apply(target, self, args);
    },
  });
}

/** From now on functions of the language count. */
export function countNatives(): void {
  countTexts();
  countLists();
  countOthers();
}
