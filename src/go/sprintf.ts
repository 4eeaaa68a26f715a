import { formatFloat } from './float.ts';
import type { FloatVerb } from './float.ts';
import { canBackquote, isPrint, quote, quoteRune, quoteToAscii } from './quote.ts';

/** An argument of {@link sprintf}, with its type in Go. */
export type FormatArgument =
  | { readonly type: 'string' | 'json.Number'; readonly value: string }
  | { readonly type: '<nil>' }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'int' | 'int64'; readonly value: bigint }
  | { readonly type: '*big.Int'; readonly value: bigint }
  | { readonly type: 'float64'; readonly value: number }
  | { readonly type: '[]interface {}'; readonly items: readonly FormatArgument[] }
  | { readonly type: 'map[string]interface {}'; readonly entries: readonly (readonly [string, FormatArgument])[] };

/** Called with the size of each piece of output before it is made; throws to end the formatting. */
export type SizeGuard = (chars: number) => void;

/** Go's `fmt.Sprintf` for basic types. Errors in the format show in the text, as in Go: `%!d(string=a)`. */
export function sprintf(format: string, args: readonly FormatArgument[], guard: SizeGuard): string {
  return new Formatter(format, args, guard).run();
}

/** Largest width and precision of a format; Go refuses larger ones. */
const MAX_WIDTH = 1_000_000;
const MAX_RUNE = 0x10ffffn;

class Formatter {
  readonly #format: string;
  readonly #args: readonly FormatArgument[];
  readonly #guard: SizeGuard;
  #output = '';
  #at = 0;
  #next = 0;
  #isReordered = false;
  #isGoodIndex = true;
  #afterIndex = false;
  #flags = new Set<string>();
  #goSyntax = false;
  #plusVerb = false;
  #width: number | undefined;
  #precision: number | undefined;

  constructor(format: string, args: readonly FormatArgument[], guard: SizeGuard) {
    this.#format = format;
    this.#args = args;
    this.#guard = guard;
  }

  run(): string {
    while (this.#at < this.#format.length) {
      const percent = this.#format.indexOf('%', this.#at);
      const end = percent === -1 ? this.#format.length : percent;
      this.#put(this.#format.slice(this.#at, end));
      this.#at = end + 1;
      if (percent !== -1) {
        this.#directive();
      }
    }
    this.#extra();
    return this.#output;
  }

  #put(text: string): void {
    this.#guard(text.length);
    this.#output += text;
  }

  #clear(): void {
    this.#flags = new Set();
    this.#goSyntax = false;
    this.#plusVerb = false;
    this.#width = undefined;
    this.#precision = undefined;
  }

  #directive(): void {
    this.#clear();
    this.#isGoodIndex = true;
    this.#afterIndex = false;
    while ('#0+- '.includes(this.#format[this.#at] ?? '?')) {
      this.#flags.add(this.#format[this.#at] ?? '');
      this.#at += 1;
    }
    this.#argumentIndex();
    this.#readWidth();
    this.#readPrecision();
    if (!this.#afterIndex) {
      this.#argumentIndex();
    }
    if (this.#at >= this.#format.length) {
      this.#put('%!(NOVERB)');
      return;
    }
    const verb = String.fromCodePoint(this.#format.codePointAt(this.#at) ?? 0);
    this.#at += verb.length;
    this.#verb(verb);
  }

  #verb(verb: string): void {
    const argument = this.#args[this.#next];
    if (verb === '%') {
      this.#put('%');
    } else if (!this.#isGoodIndex) {
      this.#put(`%!${verb}(BADINDEX)`);
    } else if (argument === undefined) {
      this.#put(`%!${verb}(MISSING)`);
    } else {
      if (verb === 'v') {
        this.#goSyntax = this.#flags.delete('#');
        this.#plusVerb = this.#flags.delete('+');
      }
      this.#next += 1;
      this.#print(argument, verb);
    }
  }

  /** `[n]`: the argument that the next part of the directive uses. */
  #argumentIndex(): void {
    this.#afterIndex = false;
    if (this.#format[this.#at] !== '[') {
      return;
    }
    this.#isReordered = true;
    const close = this.#format.indexOf(']', this.#at);
    if (close === -1) {
      this.#isGoodIndex = false;
      this.#at += 1;
      return;
    }
    const digits = this.#format.slice(this.#at + 1, close);
    this.#at = close + 1;
    const index = /^\d{1,7}$/.test(digits) ? Number(digits) - 1 : -1;
    // After an index out of range Go reads no second index, after one that is not a number it does.
    this.#afterIndex = index !== -1 || digits === '0';
    if (index >= 0 && index < this.#args.length) {
      this.#next = index;
    } else {
      this.#isGoodIndex = false;
    }
  }

  #readWidth(): void {
    if (this.#format[this.#at] === '*') {
      this.#at += 1;
      this.#width = this.#starArgument();
      if (this.#width === undefined) {
        this.#put('%!(BADWIDTH)');
      } else if (this.#width < 0) {
        this.#width = -this.#width;
        this.#flags.add('-');
        this.#flags.delete('0');
      }
      this.#afterIndex = false;
      return;
    }
    this.#width = this.#readNumber();
    if (this.#afterIndex && this.#width !== undefined) {
      this.#isGoodIndex = false;
    }
  }

  #readPrecision(): void {
    if (this.#format[this.#at] !== '.') {
      return;
    }
    this.#at += 1;
    if (this.#afterIndex) {
      this.#isGoodIndex = false;
    }
    this.#argumentIndex();
    if (this.#format[this.#at] !== '*') {
      this.#precision = this.#readNumber() ?? 0;
      return;
    }
    this.#at += 1;
    const precision = this.#starArgument();
    if (precision === undefined || precision < 0) {
      this.#put('%!(BADPREC)');
    } else {
      this.#precision = precision;
    }
    this.#afterIndex = false;
  }

  /** The argument that gives the width or precision for a `*`. */
  #starArgument(): number | undefined {
    const argument = this.#args[this.#next];
    if (argument === undefined) {
      return undefined;
    }
    this.#next += 1;
    const value = argument.type === 'int' || argument.type === 'int64' ? Number(argument.value) : undefined;
    return value !== undefined && Math.abs(value) <= MAX_WIDTH ? value : undefined;
  }

  /** A decimal number. One that is too large ends the format, as in Go. */
  #readNumber(): number | undefined {
    let value: number | undefined;
    while (/^[0-9]$/.test(this.#format[this.#at] ?? '')) {
      if ((value ?? 0) > MAX_WIDTH) {
        this.#at = this.#format.length;
        return undefined;
      }
      value = (value ?? 0) * 10 + Number(this.#format[this.#at]);
      this.#at += 1;
    }
    return value;
  }

  #extra(): void {
    if (this.#isReordered || this.#next >= this.#args.length) {
      return;
    }
    this.#clear();
    this.#put('%!(EXTRA ');
    for (const [index, argument] of this.#args.slice(this.#next).entries()) {
      const separator = index === 0 ? '' : ', ';
      this.#put(argument.type === '<nil>' ? separator : `${separator}${argument.type}=`);
      this.#print(argument, 'v');
    }
    this.#put(')');
  }

  #print(argument: FormatArgument, verb: string): void {
    if (verb === 'T') {
      this.#text(argument.type);
      return;
    }
    switch (argument.type) {
      case '<nil>':
        return this.#nil(verb);
      case 'string':
      case 'json.Number':
        return this.#string(argument, verb);
      case 'bool':
        return verb === 'v' || verb === 't' ? this.#pad(String(argument.value)) : this.#badVerb(argument, verb);
      case 'int':
      case 'int64':
        return this.#int(argument, verb);
      case '*big.Int':
        return this.#big(argument, verb);
      case 'float64':
        return this.#float(argument, verb);
      case '[]interface {}':
        return this.#list(argument.items, verb);
      case 'map[string]interface {}':
        return this.#map(argument.entries, verb);
    }
  }

  /** Flags and verb apply to each item. */
  #list(items: readonly FormatArgument[], verb: string): void {
    this.#put('[');
    for (const [index, item] of items.entries()) {
      this.#put(index === 0 ? '' : ' ');
      this.#item(item, verb);
    }
    this.#put(']');
  }

  #map(entries: readonly (readonly [string, FormatArgument])[], verb: string): void {
    this.#put('map[');
    for (const [index, [key, item]] of entries.entries()) {
      this.#put(index === 0 ? '' : ' ');
      this.#string({ type: 'string', value: key }, verb);
      this.#put(':');
      this.#item(item, verb);
    }
    this.#put(']');
  }

  #item(item: FormatArgument, verb: string): void {
    if (item.type === '<nil>') {
      this.#put('<nil>');
    } else {
      this.#print(item, verb);
    }
  }

  #nil(verb: string): void {
    if (verb === 'v') {
      this.#text('<nil>');
    } else {
      this.#put(`%!${verb}(<nil>)`);
    }
  }

  #badVerb(argument: FormatArgument & { readonly value: unknown }, verb: string): void {
    this.#put(`%!${verb}(${argument.type}=`);
    this.#print(argument, 'v');
    this.#put(')');
  }

  #string(argument: FormatArgument & { type: 'string' | 'json.Number' }, verb: string): void {
    switch (verb) {
      case 'v':
        return this.#goSyntax ? this.#quoted(argument.value) : this.#text(argument.value);
      case 's':
        return this.#text(argument.value);
      case 'q':
        return this.#quoted(argument.value);
      case 'x':
      case 'X':
        return this.#hexText(argument.value, verb === 'X');
      default:
        return this.#badVerb(argument, verb);
    }
  }

  #truncate(text: string): string {
    if (this.#precision === undefined || text.length <= this.#precision) {
      return text;
    }
    return Array.from(text).slice(0, this.#precision).join('');
  }

  #text(text: string): void {
    this.#pad(this.#truncate(text));
  }

  #quoted(value: string): void {
    const text = this.#truncate(value);
    if (this.#flags.has('#') && canBackquote(text)) {
      this.#pad(`\`${text}\``);
    } else {
      this.#pad(this.#flags.has('+') ? quoteToAscii(text) : quote(text));
    }
  }

  #hexText(text: string, isUpper: boolean): void {
    const bytes = Buffer.from(text).subarray(0, this.#precision);
    this.#guard(bytes.length * 5);
    const prefix = this.#flags.has('#') ? '0x' : '';
    let encoded = bytes.toString('hex');
    if (this.#flags.has(' ')) {
      encoded = (encoded.match(/../g) ?? []).map((pair) => prefix + pair).join(' ');
    } else if (encoded !== '') {
      encoded = prefix + encoded;
    }
    this.#pad(isUpper ? encoded.toUpperCase() : encoded);
  }

  #int(argument: FormatArgument & { type: 'int' | 'int64' }, verb: string): void {
    const { value } = argument;
    switch (verb) {
      case 'v':
      case 'd':
        return this.#integer(value, 10, verb);
      case 'b':
        return this.#integer(value, 2, verb);
      case 'o':
      case 'O':
        return this.#integer(value, 8, verb);
      case 'x':
      case 'X':
        return this.#integer(value, 16, verb);
      case 'c':
        return this.#pad(runeOf(value));
      case 'q':
        return this.#pad(quoteRune(runeOf(value), this.#flags.has('+')));
      case 'U':
        return this.#unicode(value);
      default:
        return this.#badVerb(argument, verb);
    }
  }

  #integer(value: bigint, base: number, verb: string): void {
    const sign = value < 0n ? '-' : this.#flags.has('+') ? '+' : this.#flags.has(' ') ? ' ' : '';
    if (this.#precision === 0 && value === 0n) {
      this.#spaces(this.#width ?? 0);
      return;
    }
    let least = this.#precision ?? 0;
    if (this.#precision === undefined && this.#padsWithZeros() && this.#width !== undefined) {
      least = this.#width - sign.length;
    }
    this.#guard(least);
    let digits = (value < 0n ? -value : value).toString(base).padStart(least, '0');
    if (this.#flags.has('#')) {
      digits = integerPrefix(base, digits) + digits;
    }
    if (verb === 'O') {
      digits = `0o${digits}`;
    }
    this.#pad(sign + (verb === 'X' ? digits.toUpperCase() : digits), true);
  }

  #unicode(value: bigint): void {
    const digits = BigInt.asUintN(64, value).toString(16).toUpperCase();
    this.#guard(this.#precision ?? 0);
    let text = `U+${digits.padStart(Math.max(this.#precision ?? 4, 4), '0')}`;
    if (this.#flags.has('#') && value >= 0n && value <= MAX_RUNE) {
      const rune = runeOf(value);
      text += isPrint(rune) ? ` '${rune}'` : '';
    }
    this.#pad(text, true);
  }

  #big(argument: FormatArgument & { type: '*big.Int' }, verb: string): void {
    const base = BIG_BASES.get(verb);
    if (base === undefined) {
      this.#put(`%!${verb}(big.Int=${argument.value})`);
      return;
    }
    const { value } = argument;
    const hasPlus = this.#flags.has('+') || this.#plusVerb;
    const sign = value < 0n ? '-' : hasPlus ? '+' : this.#flags.has(' ') ? ' ' : '';
    const prefix = this.#flags.has('#') || this.#goSyntax ? (BIG_PREFIXES.get(verb) ?? '') : '';
    const digits = (value < 0n ? -value : value).toString(base);
    const text = verb === 'X' ? digits.toUpperCase() : digits;
    const head = sign + (verb === 'O' ? '0o' : prefix);
    let zeros = Math.max((this.#precision ?? 0) - text.length, 0);
    const missing = Math.max((this.#width ?? 0) - head.length - zeros - text.length, 0);
    if (this.#flags.has('0') && !this.#flags.has('-') && this.#precision === undefined) {
      zeros = missing;
    }
    this.#guard(zeros);
    this.#pad(head + '0'.repeat(zeros) + text, true);
  }

  #float(argument: FormatArgument & { type: 'float64' }, verb: string): void {
    switch (verb) {
      case 'v':
        return this.#double(argument.value, 'g', verb);
      case 'b':
      case 'g':
      case 'x':
        return this.#double(argument.value, verb, verb);
      case 'G':
      case 'X':
        return this.#double(argument.value, verb === 'G' ? 'g' : 'x', verb);
      case 'e':
      case 'f':
        return this.#double(argument.value, verb, verb, 6);
      case 'E':
      case 'F':
        return this.#double(argument.value, verb === 'E' ? 'e' : 'f', verb, 6);
      default:
        return this.#badVerb(argument, verb);
    }
  }

  #double(value: number, floatVerb: FloatVerb, verb: string, defaultPrecision?: number): void {
    const precision = this.#precision ?? defaultPrecision;
    this.#guard((precision ?? 0) + FLOAT_CHARS);
    let text = formatFloat(value, floatVerb, precision);
    let sign = this.#flags.has('+') ? '+' : this.#flags.has(' ') ? ' ' : '';
    if (/^[-+]/.test(text)) {
      sign = text.startsWith('-') ? '-' : sign;
      text = text.slice(1);
    }
    if (!Number.isFinite(value)) {
      this.#notFinite(sign, text);
      return;
    }
    if (this.#flags.has('#') && floatVerb !== 'b') {
      text = withPoint(text, verb, precision);
    }
    if ('EGX'.includes(verb)) {
      text = text.toUpperCase();
    }
    if (sign !== '' && this.#padsWithZeros() && this.#width !== undefined) {
      this.#put(sign);
      this.#width -= 1;
      sign = '';
    }
    this.#pad(sign + text);
  }

  /** Infinities and NaN are padded with spaces; Go always prints the sign of infinities. */
  #notFinite(sign: string, text: string): void {
    this.#pad((text === 'Inf' && sign === '' ? '+' : sign) + text, true);
  }

  #padsWithZeros(): boolean {
    return this.#flags.has('0') && !this.#flags.has('-');
  }

  #spaces(count: number): void {
    this.#guard(count);
    this.#put(' '.repeat(Math.max(count, 0)));
  }

  #pad(text: string, onlySpaces = false): void {
    const missing = this.#width === undefined ? 0 : Math.max(this.#width - runeCount(text), 0);
    this.#guard(missing);
    const filler = (this.#padsWithZeros() && !onlySpaces ? '0' : ' ').repeat(missing);
    this.#put(this.#flags.has('-') ? text + filler : filler + text);
  }
}

/** Most characters of a double without a precision: 309 digits before the point, sign, point and exponent. */
const FLOAT_CHARS = 320;

const BIG_BASES: ReadonlyMap<string, number> = new Map([
  ['b', 2],
  ['o', 8],
  ['O', 8],
  ['d', 10],
  ['s', 10],
  ['v', 10],
  ['x', 16],
  ['X', 16],
]);

const BIG_PREFIXES: ReadonlyMap<string, string> = new Map([
  ['b', '0b'],
  ['o', '0'],
  ['x', '0x'],
  ['X', '0X'],
]);

function integerPrefix(base: number, digits: string): string {
  switch (base) {
    case 2:
      return '0b';
    case 8:
      return digits.startsWith('0') ? '' : '0';
    case 16:
      return '0x';
    default:
      return '';
  }
}

/** The `#` flag: always a point, and trailing zeros for %g and %x. */
function withPoint(text: string, verb: string, precision: number | undefined): string {
  const exponentAt = text.search(verb === 'x' || verb === 'X' ? /p/ : /e/);
  const mantissa = exponentAt === -1 ? text : text.slice(0, exponentAt);
  const exponent = exponentAt === -1 ? '' : text.slice(exponentAt);
  const pointed = mantissa.includes('.') ? mantissa : `${mantissa}.`;
  if (!'vgGx'.includes(verb)) {
    return pointed + exponent;
  }
  const wanted = precision ?? 6;
  const significant = mantissa.replace('.', '').replace(/^0+/, '').length;
  const counted = significant + (mantissa === '0' ? 1 : 0);
  return pointed + '0'.repeat(Math.max(wanted - counted, 0)) + exponent;
}

function runeOf(value: bigint): string {
  const isRune = value >= 0n && value <= MAX_RUNE && (value & ~0x7ffn) !== 0xd800n;
  return isRune ? String.fromCodePoint(Number(value)) : '\ufffd';
}

function runeCount(text: string): number {
  let count = 0;
  for (let index = 0; index < text.length; index += 1) {
    count += (text.charCodeAt(index) & 0xfc00) === 0xdc00 ? 0 : 1;
  }
  return count;
}
