import type { GroupVersionResource } from '../../resource-type.ts';
import type { MatchRule } from '../match-rule.ts';
import type { RuleRequest } from '../rule-match.ts';

const OPERATIONS = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'];
/** The last value of each is in no rule: only stars match it. */
const GROUPS = ['', 'apps', 'other'];
const VERSIONS = ['v1', 'v2', 'v3'];
const RESOURCES = ['pods', 'namespaces', 'others'];
const SUBRESOURCES = ['', 'log', 'other'];
const NAMESPACES = ['', 'team'];
const RULED = ['pods', 'pods/log', 'pods/*', 'namespaces', '*', '*/log', '*/*'];

/** Random rules and requests over few values, so that they often match. Reproducible by seed. */
export interface RandomRules {
  rule(): MatchRule;
  /** At most this many. */
  rules(most: number): readonly MatchRule[];
  request(): readonly [RuleRequest, GroupVersionResource];
  everyRequest(): readonly (readonly [RuleRequest, GroupVersionResource])[];
}

export function randomOf(seed: number): RandomRules {
  let state = seed;
  const below = (count: number): number => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % count;
  };
  const one = (list: readonly string[]): string => list[below(list.length)] ?? '';
  const some = (list: readonly string[], most = 2): string[] =>
    Array.from({ length: 1 + below(most) }, () => one(list));
  const rule = (): MatchRule => ({
    operations: below(5) === 0 ? ['*'] : some(OPERATIONS, 3),
    apiGroups: below(4) === 0 ? ['*'] : some(GROUPS.slice(0, -1)),
    apiVersions: below(4) === 0 ? ['*'] : some(VERSIONS.slice(0, -1)),
    resources: some(RULED),
    scope: one(['*', '*', 'Cluster', 'Namespaced']),
  });
  return {
    rule,
    rules: (most) => Array.from({ length: 1 + below(most) }, rule),
    request: () => [
      { operation: one(OPERATIONS), subresource: one(SUBRESOURCES), namespace: one(NAMESPACES) },
      { group: one(GROUPS), version: one(VERSIONS), resource: one(RESOURCES) },
    ],
    everyRequest: () =>
      OPERATIONS.flatMap((operation) =>
        SUBRESOURCES.flatMap((subresource) =>
          NAMESPACES.flatMap((namespace) =>
            GROUPS.flatMap((group) =>
              VERSIONS.flatMap((version) =>
                RESOURCES.map(
                  (resource) =>
                    [
                      { operation, subresource, namespace },
                      { group, version, resource },
                    ] as const,
                ),
              ),
            ),
          ),
        ),
      ),
  };
}
