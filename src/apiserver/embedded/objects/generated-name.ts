import { randomInt } from 'node:crypto';

/** The alphabet of generated names. Without vowels there are no words, and no two characters look alike. */
const LETTERS = 'bcdfghjklmnpqrstvwxz2456789';

const SUFFIX_LENGTH = 5;

/** Generated names are valid DNS labels. */
const MAX_LENGTH = 63;

/** `generateName` with five random characters (k8s.io/apiserver, storage/names). */
export function generatedName(base: string): string {
  let name = base.slice(0, MAX_LENGTH - SUFFIX_LENGTH);
  for (let index = 0; index < SUFFIX_LENGTH; index++) {
    name += LETTERS.charAt(randomInt(LETTERS.length));
  }
  return name;
}
