/** How much the Pod Security Standards forbid; least first. */
export const LEVELS = ['privileged', 'baseline', 'restricted'] as const;
export type Level = (typeof LEVELS)[number];

/** The version of Kubernetes whose standards apply: `v1.25`, or `latest`. */
export type PolicyVersion = 'latest' | `v1.${number}`;

/** A level as of a version. */
export interface LevelVersion {
  readonly level: Level;
  readonly version: PolicyVersion;
}

/** Forbids nothing. */
export const PRIVILEGED: LevelVersion = { level: 'privileged', version: 'latest' };

export function isLevel(value: unknown): value is Level {
  return (LEVELS as readonly unknown[]).includes(value);
}

/** Versions that are yet to come are versions: they are judged as `latest` is. */
export function isPolicyVersion(value: unknown): value is PolicyVersion {
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
