/** Formats of `strconv.FormatFloat`, lower case. */
export type FloatVerb = 'b' | 'e' | 'f' | 'g' | 'x';

interface Digits {
  /** Significant digits without zeros at either end; empty for zero. */
  readonly digits: string;
  /** The value is 0.digits * 10^point. */
  readonly point: number;
}

const MANTISSA_BITS = 52n;
const EXPONENT_BIAS = 1023;

/**
 * Formats a double as Go's `strconv.FormatFloat` does: `1e+06`, `-0`, `NaN`, `+Inf`.
 * @param precision digits after the point (`g`: significant digits); undefined for the shortest text that reads back
 */
export function formatFloat(value: number, verb: FloatVerb, precision?: number): string {
  if (!Number.isFinite(value)) {
    return Number.isNaN(value) ? 'NaN' : `${value < 0 ? '-' : '+'}Inf`;
  }
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const magnitude = Math.abs(value);
  switch (verb) {
    case 'e':
      return sign + scientific(magnitude, precision);
    case 'f':
      return sign + fixed(magnitude, precision);
    case 'g':
      return sign + general(magnitude, precision);
    case 'b':
      return sign + binary(magnitude);
    default:
      return sign + hexadecimal(magnitude, precision);
  }
}

function scientific(magnitude: number, precision?: number): string {
  const decimal = precision === undefined ? shortest(magnitude) : rounded(exact(magnitude), precision + 1);
  return scientificText(decimal, precision ?? Math.max(decimal.digits.length - 1, 0));
}

function scientificText({ digits, point }: Digits, precision: number): string {
  const text = digits.slice(0, precision + 1).padEnd(precision + 1, '0');
  const exponent = digits === '' ? 0 : point - 1;
  const mantissa = precision > 0 ? `${text[0] ?? '0'}.${text.slice(1)}` : text;
  return `${mantissa}e${exponentText(exponent)}`;
}

function fixed(magnitude: number, precision?: number): string {
  if (precision === undefined) {
    const decimal = shortest(magnitude);
    return fixedText(decimal, Math.max(decimal.digits.length - decimal.point, 0));
  }
  const decimal = exact(magnitude);
  return fixedText(rounded(decimal, decimal.point + precision), precision);
}

function fixedText({ digits, point }: Digits, precision: number): string {
  const whole = point > 0 ? digits.slice(0, point).padEnd(point, '0') : '0';
  if (precision === 0) {
    return whole;
  }
  const fraction = point > 0 ? digits.slice(point) : '0'.repeat(Math.min(-point, precision)) + digits;
  return `${whole}.${fraction.slice(0, precision).padEnd(precision, '0')}`;
}

/** Go's threshold for switching %g to an exponent when the precision is "as many digits as needed". */
const SHORTEST_EXPONENT = 6;

function general(magnitude: number, precision?: number): string {
  const wanted = precision === undefined ? undefined : Math.max(precision, 1);
  const decimal = wanted === undefined ? shortest(magnitude) : rounded(exact(magnitude), wanted);
  const count = decimal.digits.length;
  let threshold = wanted ?? SHORTEST_EXPONENT;
  if (wanted !== undefined && threshold > count && count >= decimal.point) {
    threshold = count;
  }
  const exponent = decimal.point - 1;
  if (exponent < -4 || exponent >= threshold) {
    return scientificText(decimal, Math.max(count - 1, 0));
  }
  return fixedText(decimal, Math.max(count - decimal.point, 0));
}

function binary(magnitude: number): string {
  const { mantissa, exponent } = parts(magnitude);
  return `${mantissa}p${exponent < 0 ? '' : '+'}${exponent}`;
}

/** Bit of the leading 1 while a hexadecimal float is rounded, as room for 15 hexadecimal digits. */
const HEX_TOP = 60n;

function hexadecimal(magnitude: number, precision?: number): string {
  const double = parts(magnitude);
  let mantissa = double.mantissa << (HEX_TOP - MANTISSA_BITS);
  let exponent = mantissa === 0n ? 0 : double.exponent + Number(MANTISSA_BITS);
  while (mantissa !== 0n && mantissa >> HEX_TOP === 0n) {
    mantissa <<= 1n;
    exponent -= 1;
  }
  if (precision !== undefined && precision < Number(HEX_TOP) / 4) {
    const cut = HEX_TOP - 4n * BigInt(precision);
    const rest = mantissa & ((1n << cut) - 1n);
    const half = 1n << (cut - 1n);
    mantissa >>= cut;
    if (rest > half || (rest === half && (mantissa & 1n) === 1n)) {
      mantissa += 1n;
    }
    mantissa <<= cut;
    if (mantissa >> (HEX_TOP + 1n) !== 0n) {
      mantissa >>= 1n;
      exponent += 1;
    }
  }
  const fraction = (mantissa & ((1n << HEX_TOP) - 1n)).toString(16).padStart(Number(HEX_TOP) / 4, '0');
  const digits =
    precision === undefined ? fraction.replace(/0+$/, '') : fraction.slice(0, precision).padEnd(precision, '0');
  return `0x${mantissa >> HEX_TOP}${digits === '' ? '' : `.${digits}`}p${exponentText(exponent)}`;
}

function exponentText(exponent: number): string {
  return `${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

/** The double as mantissa * 2^exponent. */
function parts(magnitude: number): { mantissa: bigint; exponent: number } {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, magnitude);
  const bits = view.getBigUint64(0);
  const biased = Number(bits >> MANTISSA_BITS) & 0x7ff;
  const fraction = bits & ((1n << MANTISSA_BITS) - 1n);
  return {
    mantissa: biased === 0 ? fraction : fraction | (1n << MANTISSA_BITS),
    exponent: Math.max(biased, 1) - EXPONENT_BIAS - Number(MANTISSA_BITS),
  };
}

function shortest(magnitude: number): Digits {
  const [mantissa = '0', exponent = '0'] = magnitude.toExponential().split('e');
  const digits = mantissa.replace('.', '').replace(/0+$/, '');
  return { digits, point: digits === '' ? 0 : Number(exponent) + 1 };
}

/** Every digit of the double's exact value: at most 767. */
function exact(magnitude: number): Digits {
  const { mantissa, exponent } = parts(magnitude);
  if (mantissa === 0n) {
    return { digits: '', point: 0 };
  }
  const text =
    exponent >= 0 ? (mantissa << BigInt(exponent)).toString() : (mantissa * 5n ** BigInt(-exponent)).toString();
  return { digits: text.replace(/0+$/, ''), point: text.length + Math.min(exponent, 0) };
}

/** Rounds to a count of digits, halves to even. */
function rounded({ digits, point }: Digits, count: number): Digits {
  if (count >= digits.length) {
    return { digits, point };
  }
  if (count < 0) {
    return { digits: '', point: 0 };
  }
  const kept = digits.slice(0, count);
  const rest = digits.slice(count);
  const isOdd = '13579'.includes(kept.at(-1) ?? '0');
  const isUp = rest[0] === '5' && rest.length === 1 ? isOdd : (rest[0] ?? '0') >= '5';
  if (!isUp) {
    const text = kept.replace(/0+$/, '');
    return { digits: text, point: text === '' ? 0 : point };
  }
  const carried = (BigInt(kept === '' ? '0' : kept) + 1n).toString().padStart(count, '0');
  return { digits: carried.replace(/0+$/, ''), point: point + carried.length - count };
}
