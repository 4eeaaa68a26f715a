/**
 * Orders strings by code point, as Go compares their UTF-8. JavaScript's own order by UTF-16 units puts U+E000 to U+FFFF
 * after the supplementary planes.
 */
export function compareStrings(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at++) {
    const one = left.charCodeAt(at);
    const other = right.charCodeAt(at);
    if (one !== other) {
      return isSurrogate(one) === isSurrogate(other) ? one - other : isSurrogate(one) ? 1 : -1;
    }
  }
  return left.length - right.length;
}

function isSurrogate(unit: number): boolean {
  return (unit & 0xf800) === 0xd800;
}
