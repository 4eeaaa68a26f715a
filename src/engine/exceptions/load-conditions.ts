import { createRequire } from 'node:module';
import type * as conditions from './check-conditions.ts';

const require = createRequire(import.meta.url);
const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';

/** Loaded on demand, because it loads CEL. */
export function loadConditions(): typeof conditions.meetsAll {
  return (require(`./check-conditions.${extension}`) as typeof conditions).meetsAll;
}
