/** The oldest supported Kubernetes: match conditions of webhooks are stable since 1.30 (KEP-3716). */
export const MIN_KUBERNETES = [1, 30] as const;

/** Major and minor version of an API server; undefined when they are not numbers. */
export function minorVersion({
  major,
  minor,
}: {
  major: string;
  minor: string;
}): readonly [number, number] | undefined {
  // Some builds write `34+`.
  const numbers = [major, minor].map((text) => Number.parseInt(text, 10));
  const [first = NaN, second = NaN] = numbers;
  return Number.isNaN(first) || Number.isNaN(second) ? undefined : [first, second];
}

export function isTooOld([major, minor]: readonly [number, number]): boolean {
  const [leastMajor, leastMinor] = MIN_KUBERNETES;
  return major < leastMajor || (major === leastMajor && minor < leastMinor);
}
