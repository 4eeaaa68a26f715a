import { InvalidArgumentError } from 'commander';

/** Parses the value of a flag for a count of at most four digits. */
export function wholeNumber(text: string, least: number): number {
  const value = Number(text);
  if (!/^\d{1,4}$/.test(text) || value < least) {
    throw new InvalidArgumentError(`expected a whole number from ${least}, got ${text}`);
  }
  return value;
}
