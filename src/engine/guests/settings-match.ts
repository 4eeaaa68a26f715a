import { createRequire } from 'node:module';
import type * as celPolicy from '../cel-policy/index.ts';
import type * as celRequest from './cel-request.ts';
import type { JsonObject } from '../values/json-text.ts';

const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const require = createRequire(import.meta.url);

/** Why settings of `builtin:cel` do not apply to a request; undefined if they do. */
export type SettingsMatch = (requestJson: Buffer) => string | undefined;

/**
 * Matches requests with the matchConstraints and match conditions of settings of `builtin:cel`, for commands without a cluster.
 * Settings with mistakes match everything: loading them says what is wrong.
 * @param namespaceOf undefined for a namespace that is not known
 */
export function settingsMatch(settings: unknown, namespaceOf: (name: string) => JsonObject | undefined): SettingsMatch {
  const { parseSettings, PolicyEnvironments } = require(`../cel-policy/index.${extension}`) as typeof celPolicy;
  const { requestOf } = require(`./cel-request.${extension}`) as typeof celRequest;
  const { policy } = parseSettings(settings, new PolicyEnvironments({ hasWholeRequest: true }));
  return (requestJson) => policy?.unmatchedBecause(requestOf(requestJson), { get: namespaceOf });
}
