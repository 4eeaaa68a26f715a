/** Whether two JSON values say the same. Keys may be in any order. */
export function isSameJson(left: unknown, right: unknown): boolean {
  if (left === right) {
    return true;
  }
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) {
    return false;
  }
  if (Array.isArray(left) || Array.isArray(right)) {
    return (
      Array.isArray(left) &&
      Array.isArray(right) &&
      left.length === right.length &&
      left.every((item, index) => isSameJson(item, right[index]))
    );
  }
  const fields = Object.entries(left);
  return (
    fields.length === Object.keys(right).length &&
    fields.every(
      ([key, value]) =>
        Object.hasOwn(right, key) && isSameJson(value, (right as Readonly<Record<string, unknown>>)[key]),
    )
  );
}
