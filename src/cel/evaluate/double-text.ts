/** Exponents from here on are printed as such, as Go's shortest format does. */
const MIN_EXPONENT = -4;
const MAX_EXPONENT = 6;

/** Prints a double with as few digits as tell it from others, as API servers do: `1.5`, `1e+06`, `+Inf`. */
export function formatDouble(value: number): string {
  if (!Number.isFinite(value)) {
    return Number.isNaN(value) ? 'NaN' : `${value < 0 ? '-' : '+'}Inf`;
  }
  if (Object.is(value, -0)) {
    return '-0';
  }
  const scientific = value.toExponential();
  const at = scientific.indexOf('e');
  const exponent = Number(scientific.slice(at + 1));
  if (exponent >= MIN_EXPONENT && exponent < MAX_EXPONENT) {
    return plain(value, scientific.slice(0, at), exponent);
  }
  const digits = String(Math.abs(exponent)).padStart(2, '0');
  return `${scientific.slice(0, at)}e${exponent < 0 ? '-' : '+'}${digits}`;
}

function plain(value: number, mantissa: string, exponent: number): string {
  const text = String(value);
  return text.includes('e') ? value.toFixed(mantissa.replace(/[-.]/g, '').length - 1 - exponent) : text;
}
