/** A version of a provider, as its first three numbers. */
export interface ProviderVersion {
  readonly numbers: readonly [number, number, number];
  /** Whether it precedes the release of its numbers: `1.16.0-rc.1`. */
  readonly isPrerelease: boolean;
}

/** Longest version: those of container images with build metadata and commits stay below 60 characters. */
const MAX_VERSION_LENGTH = 128;
/** Numbers have at most nine digits, so that they stay exact; dates as versions have eight. */
const VERSION = /^v?(\d{1,9})(?:\.(\d{1,9})(?:\.(\d{1,9})(?:\.\w[\w.]*)?)?)?(?:$|[-+_~](.*)$)/;
/** Suffixes of versions before a release. Those of distributions (`-eksbuild.1`, `-rancher1`, `+k3s1`) are not. */
const PRERELEASE = /^(?:alpha|beta|rc|pre|preview|dev|snapshot|nightly|0\.dev|ci)(?:[^a-z]|$)/i;

/** Undefined for what is not a version, such as `latest` or a digest. */
export function parseProviderVersion(text: string): ProviderVersion | undefined {
  const [match, major, minor = '0', patch = '0', suffix = ''] =
    text.length > MAX_VERSION_LENGTH ? [] : (VERSION.exec(text.trim()) ?? []);
  if (match === undefined || major === undefined) {
    return undefined;
  }
  return { numbers: [Number(major), Number(minor), Number(patch)], isPrerelease: PRERELEASE.test(suffix) };
}

/** The lowest version of a text such as `>=1.9.0`, which is all that is known of what runs. Undefined for any other text. */
export function leastProviderVersion(text: string): ProviderVersion | undefined {
  return text.startsWith('>=') ? parseProviderVersion(text.slice(2)) : undefined;
}

export function compareProviderVersions(left: ProviderVersion['numbers'], right: ProviderVersion['numbers']): number {
  return left[0] - right[0] || left[1] - right[1] || left[2] - right[2];
}

/** Whether the minor version is newer than that of `latest`: a patch release brings no features. */
export function isNewerMinor({ numbers: [major, minor] }: ProviderVersion, latest: ProviderVersion): boolean {
  return major - latest.numbers[0] > 0 || (major === latest.numbers[0] && minor > latest.numbers[1]);
}
