import { randomInt } from 'node:crypto';

/** Letters of generated names: no vowels, so that no words come out, and none that look alike. */
const LETTERS = 'bcdfghjklmnpqrstvwxz2456789';

const SUFFIX_LENGTH = 5;

/** Generated names fit where DNS labels are wanted. */
const MAX_LENGTH = 63;

/** `generateName` with five random characters (k8s.io/apiserver, storage/names). */
export function generatedName(base: string): string {
  let name = base.slice(0, MAX_LENGTH - SUFFIX_LENGTH);
  for (let index = 0; index < SUFFIX_LENGTH; index++) {
    name += LETTERS.charAt(randomInt(LETTERS.length));
  }
  return name;
}
