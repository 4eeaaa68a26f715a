/** Levels of the Pod Security Standards, least strict first. */
export const LEVELS = ['privileged', 'baseline', 'restricted'] as const;
export type Level = (typeof LEVELS)[number];

/** The version of Kubernetes whose standards apply: `v1.25`, or `latest`. */
export type StandardsVersion = 'latest' | `v1.${number}`;

/** A level in a version. */
export interface LevelVersion {
  readonly level: Level;
  readonly version: StandardsVersion;
}

/** The level without restrictions. */
export const PRIVILEGED: LevelVersion = { level: 'privileged', version: 'latest' };

export function isLevel(value: unknown): value is Level {
  return (LEVELS as readonly unknown[]).includes(value);
}

/** Future versions are valid, and equal `latest`. */
export function isPolicyVersion(value: unknown): value is StandardsVersion {
  return (
    value === 'latest' ||
    (typeof value === 'string' && /^v1\.(?:0|[1-9][0-9]*)$/.test(value) && Number.isSafeInteger(minorOf(value)))
  );
}

/** The minor version; Infinity for `latest`. */
export function minorOf(version: string): number {
  return version === 'latest' ? Number.POSITIVE_INFINITY : Number(version.slice('v1.'.length));
}

export function isStricter(a: Level, b: Level): boolean {
  return LEVELS.indexOf(a) > LEVELS.indexOf(b);
}

/** `restricted:v1.25`. */
export function levelText({ level, version }: LevelVersion): string {
  return `${level}:${version}`;
}

export function isSameLevel(a: LevelVersion, b: LevelVersion): boolean {
  return a.level === b.level && a.version === b.version;
}
