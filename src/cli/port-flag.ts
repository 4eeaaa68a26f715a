import { InvalidArgumentError } from 'commander';

/** Reads the value of a flag that names a port; 0 stands for any free one. */
export function portNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > 65_535) {
    throw new InvalidArgumentError(`expected a port from 0 to 65535, got ${text}`);
  }
  return value;
}
