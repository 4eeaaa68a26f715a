/** The exact decimal digits of a double. */
interface Decimal {
  /** Digits without a point: the value is digits × 10^-scale. */
  readonly digits: bigint;
  readonly scale: number;
}

const FRACTION_BITS = 52n;
const EXPONENT_BIAS = 1075;

function exactDecimal(value: number): Decimal {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, Math.abs(value));
  const bits = view.getBigUint64(0);
  const biased = Number(bits >> FRACTION_BITS);
  const fraction = bits & ((1n << FRACTION_BITS) - 1n);
  const mantissa = biased === 0 ? fraction : fraction | (1n << FRACTION_BITS);
  const exponent = Math.max(1, biased) - EXPONENT_BIAS;
  return exponent >= 0
    ? { digits: mantissa << BigInt(exponent), scale: 0 }
    : { digits: mantissa * 5n ** BigInt(-exponent), scale: -exponent };
}

/** Divides by 10^tens, rounding half to even; a negative power multiplies. */
function shiftRounded(digits: bigint, tens: number): bigint {
  if (tens <= 0) {
    return digits * 10n ** BigInt(-tens);
  }
  const divisor = 10n ** BigInt(tens);
  const quotient = digits / divisor;
  const twice = 2n * (digits % divisor);
  return twice > divisor || (twice === divisor && quotient % 2n === 1n) ? quotient + 1n : quotient;
}

/** A finite double with digits after the point, half rounded to even: unlike toFixed, which rounds half up. No sign. */
export function fixedText(value: number, precision: number): string {
  const { digits, scale } = exactDecimal(value);
  const text = String(shiftRounded(digits, scale - precision)).padStart(precision + 1, '0');
  return precision === 0 ? text : `${text.slice(0, -precision)}.${text.slice(-precision)}`;
}

/** The digits and the exponent of a finite double's scientific notation. No sign. */
export function scientificParts(value: number, precision: number): { mantissa: string; exponent: number } {
  const { digits, scale } = exactDecimal(value);
  if (digits === 0n) {
    return { mantissa: withPoint('0'.repeat(precision + 1)), exponent: 0 };
  }
  const length = String(digits).length;
  const text = String(shiftRounded(digits, length - 1 - precision));
  // Rounding up may have made one digit more: 9.99 to 10.0.
  return {
    mantissa: withPoint(text.slice(0, precision + 1)),
    exponent: length - 1 - scale + text.length - 1 - precision,
  };
}

function withPoint(digits: string): string {
  return digits.length === 1 ? digits : `${digits.slice(0, 1)}.${digits.slice(1)}`;
}

/** A finite double with as many digits as tell it from others, never in scientific notation. */
export function plainText(value: number): string {
  const text = String(value);
  const match = /^(-?)(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(text);
  if (match === null) {
    return Object.is(value, -0) ? '-0' : text;
  }
  const [, sign = '', first = '', rest = '', power = ''] = match;
  const exponent = Number(power);
  const digits = first + rest;
  return exponent < 0 ? `${sign}0.${'0'.repeat(-exponent - 1)}${digits}` : `${sign}${digits.padEnd(exponent + 1, '0')}`;
}
