import { InvalidArgumentError } from 'commander';

/** The minor version of a text such as `1.34`; undefined for any other text. */
export function kubernetesMinor(text: string): number | undefined {
  const minor = /^v?1\.(\d{1,3})$/.exec(text)?.[1];
  return minor === undefined ? undefined : Number(minor);
}

/** Parses `--kubernetes-version`. */
export function kubernetesVersion(text: string): number {
  const minor = kubernetesMinor(text);
  if (minor === undefined) {
    throw new InvalidArgumentError(`Expected a version such as 1.34, got ${text}.`);
  }
  return minor;
}
