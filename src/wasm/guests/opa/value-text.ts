import { quote } from '../../../go/index.ts';
import { WasmError } from '../../binary/errors.ts';
import { MAX_RESULT_CHARS } from './builtin.ts';
import { BuiltinError } from './errors.ts';
import { RegoNumber } from './number.ts';
import { isArray, RegoObject, RegoSet } from './value.ts';
import type { RegoValue } from './value.ts';
import { parseJson } from '../../../values/index.ts';

/**
 * Maximum nesting of values in builtins. Kubernetes objects stay below 100. Builtins recurse over values on a stack that
 * already holds the guest's frames, and must not overflow it.
 */
const MAX_VALUE_DEPTH = 1000;

/** Parses the output of OPA's `opa_value_dump`: JSON, plus sets (`{1, 2}`, `set()`) and keys of any type. */
export function parseRegoText(text: string): RegoValue {
  return new ValueReader(text, true).read();
}

/**
 * Parses strict JSON; numbers keep all their digits.
 * @throws BuiltinError `operand-value`
 */
export function parseJsonText(text: string): RegoValue {
  return new ValueReader(text, false).read();
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d*)?(?:[eE][+-]?\d*)?/y;
const JSON_NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// oxlint-disable-next-line no-control-regex -- JSON strings must escape these
const NOT_PLAIN = /[\\\u0000-\u001f]/;

class ValueReader {
  readonly #text: string;
  readonly #rego: boolean;
  #at = 0;
  #depth = 0;

  constructor(text: string, rego: boolean) {
    this.#text = text;
    this.#rego = rego;
  }

  read(): RegoValue {
    const value = this.#value();
    this.#skipSpace();
    if (this.#at !== this.#text.length) {
      this.#fail('the end');
    }
    return value;
  }

  #value(): RegoValue {
    this.#skipSpace();
    switch (this.#text[this.#at]) {
      case '"':
        return this.#string();
      case '[':
        return this.#nested(() => this.#array());
      case '{':
        return this.#nested(() => this.#braces());
      case 't':
        return this.#word('true', true);
      case 'f':
        return this.#word('false', false);
      case 'n':
        return this.#word('null', null);
      case 's':
        return this.#rego ? this.#word('set()', new RegoSet([])) : this.#fail('a value');
      default:
        return new RegoNumber(this.#match(this.#rego ? NUMBER : JSON_NUMBER) ?? this.#fail('a value'));
    }
  }

  #nested(read: () => RegoValue): RegoValue {
    this.#depth += 1;
    if (this.#depth > MAX_VALUE_DEPTH) {
      throw new WasmError('guest-error', `a value is nested deeper than ${MAX_VALUE_DEPTH} levels`);
    }
    this.#at += 1;
    const value = read();
    this.#depth -= 1;
    return value;
  }

  /** Uses no regular expression: one for strings with escapes overflows the stack, or backtracks, on long strings. */
  #string(): string {
    const start = this.#at;
    if (this.#text[start] !== '"') {
      this.#fail('a string');
    }
    let end = start;
    do {
      end = this.#text.indexOf('"', end + 1);
    } while (end !== -1 && this.#isEscaped(end));
    const quoted = end === -1 ? this.#fail('the end of a string') : this.#text.slice(start, end + 1);
    this.#at = end + 1;
    if (!NOT_PLAIN.test(quoted)) {
      return quoted.slice(1, -1);
    }
    try {
      return parseJson(quoted) as string;
    } catch {
      return this.#fail('valid escapes');
    }
  }

  #isEscaped(index: number): boolean {
    let backslashes = 0;
    while (this.#text[index - 1 - backslashes] === '\\') {
      backslashes += 1;
    }
    return backslashes % 2 === 1;
  }

  #skipSpace(): void {
    while (' \t\r\n'.includes(this.#text[this.#at] ?? '?')) {
      this.#at += 1;
    }
  }

  #array(): RegoValue {
    const items: RegoValue[] = [];
    if (this.#take(']')) {
      return items;
    }
    do {
      items.push(this.#value());
    } while (this.#take(','));
    this.#expect(']');
    return items;
  }

  #braces(): RegoValue {
    if (this.#take('}')) {
      return new RegoObject([]);
    }
    const first = this.#key();
    if (this.#rego && !this.#take(':')) {
      return this.#setFrom(first);
    }
    if (!this.#rego) {
      this.#expect(':');
    }
    const entries: [RegoValue, RegoValue][] = [[first, this.#value()]];
    while (this.#take(',')) {
      const key = this.#key();
      this.#expect(':');
      entries.push([key, this.#value()]);
    }
    this.#expect('}');
    return new RegoObject(entries);
  }

  #key(): RegoValue {
    if (this.#rego) {
      return this.#value();
    }
    this.#skipSpace();
    return this.#string();
  }

  #setFrom(first: RegoValue): RegoSet {
    const items = [first];
    while (this.#take(',')) {
      items.push(this.#value());
    }
    this.#expect('}');
    return new RegoSet(items);
  }

  #word<T extends RegoValue>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) {
      this.#fail(word);
    }
    this.#at += word.length;
    return value;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text)?.[0];
    this.#at += match?.length ?? 0;
    return match;
  }

  #take(character: string): boolean {
    this.#skipSpace();
    const taken = this.#text[this.#at] === character;
    this.#at += taken ? 1 : 0;
    return taken;
  }

  #expect(character: string): void {
    if (!this.#take(character)) {
      this.#fail(`"${character}"`);
    }
  }

  #fail(expected: string): never {
    throw new BuiltinError('operand-value', `not valid JSON: expected ${expected} at character ${this.#at}`);
  }
}

/**
 * Writes a value in the notation of `opa_value_parse`.
 * @throws WasmError `out-of-fuel` for a text above MAX_RESULT_CHARS: values that share elements (YAML aliases) can be
 *   exponentially larger as text than in memory, so the size is counted while writing.
 * @param charge called with the length of each token, before it is added to the text
 */
export function regoText(value: RegoValue, charge: (chars: number) => void = () => {}): string {
  const writer = new ValueWriter(stringifyWellFormed, charge);
  writer.write(value, 0);
  return writer.text();
}

/** A value as OPA prints it in `sprintf`: strings quoted as in Go, keys and elements sorted. */
export function printValue(value: RegoValue): string {
  const writer = new ValueWriter(quote, () => {});
  writer.write(value, 0);
  return writer.text();
}

/** Replaces lone surrogates, as Go does: guests reject them. */
function stringifyWellFormed(text: string): string {
  return JSON.stringify(text.toWellFormed());
}

class ValueWriter {
  readonly #quote: (text: string) => string;
  readonly #charge: (chars: number) => void;
  readonly #parts: string[] = [];
  #chars = 0;

  constructor(quoteText: (text: string) => string, charge: (chars: number) => void) {
    this.#quote = quoteText;
    this.#charge = charge;
  }

  text(): string {
    return this.#parts.join('');
  }

  write(value: RegoValue, depth: number): void {
    if (depth > MAX_VALUE_DEPTH) {
      throw new WasmError('guest-error', `a value is nested deeper than ${MAX_VALUE_DEPTH} levels`);
    }
    if (typeof value === 'string') {
      this.#put(this.#quote(value));
    } else if (value === null || typeof value === 'boolean') {
      this.#put(String(value));
    } else if (value instanceof RegoNumber) {
      this.#put(value.text);
    } else if (isArray(value)) {
      this.#list('[', value, ']', depth);
    } else if (value instanceof RegoSet) {
      this.#set(value, depth);
    } else {
      this.#object(value, depth);
    }
  }

  #set(set: RegoSet, depth: number): void {
    if (set.size === 0) {
      this.#put('set()');
    } else {
      this.#list('{', set.sorted(), '}', depth);
    }
  }

  #list(open: string, items: readonly RegoValue[], close: string, depth: number): void {
    this.#put(open);
    for (const [index, item] of items.entries()) {
      this.#put(index === 0 ? '' : ', ');
      this.write(item, depth + 1);
    }
    this.#put(close);
  }

  #object(object: RegoObject, depth: number): void {
    this.#put('{');
    for (const [index, [key, item]] of object.sorted().entries()) {
      this.#put(index === 0 ? '' : ', ');
      this.write(key, depth + 1);
      this.#put(': ');
      this.write(item, depth + 1);
    }
    this.#put('}');
  }

  #put(text: string): void {
    this.#chars += text.length;
    if (this.#chars > MAX_RESULT_CHARS) {
      throw new WasmError('out-of-fuel', `a builtin's result exceeds ${MAX_RESULT_CHARS} characters`);
    }
    this.#charge(text.length);
    this.#parts.push(text);
  }
}
