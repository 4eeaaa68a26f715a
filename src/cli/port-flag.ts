import { InvalidArgumentError } from 'commander';

/** Parses the value of a port flag; 0 means any free port. */
export function portNumber(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > 65_535) {
    throw new InvalidArgumentError(`expected a port from 0 to 65535, got ${text}`);
  }
  return value;
}
