// Objects of our own kinds for tests, and tests of their validation.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { JsonObject } from '../../../resources/index.ts';
import type { OwnKindsReview } from '../own-kinds-review.ts';
import { OwnKindsRules, type OwnKindsRulesOptions } from '../own-kinds-rules.ts';

export const CONTROLLER = 'system:serviceaccount:portcullis:portcullis-controller';
export const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] };
export const BASELINE = { module: 'builtin:pod-security', settings: { enforce: 'baseline' } };
export const SPEC = { ...BASELINE, mutating: false, rules: [RULE] };

export type Kind = 'cap' | 'ap' | 'capg' | 'apg' | 'ps' | 'prev' | 'psr';

export const KINDS: Readonly<Record<Kind, readonly [group: string, kind: string, isNamespaced: boolean]>> = {
  cap: ['policies.kubewarden.io', 'ClusterAdmissionPolicy', false],
  ap: ['policies.kubewarden.io', 'AdmissionPolicy', true],
  capg: ['policies.kubewarden.io', 'ClusterAdmissionPolicyGroup', false],
  apg: ['policies.kubewarden.io', 'AdmissionPolicyGroup', true],
  ps: ['policies.kubewarden.io', 'PolicyServer', false],
  prev: ['portcullis.dev', 'PolicyRevision', true],
  psr: ['portcullis.dev', 'PolicyServerReplica', true],
};

export function object(kind: Kind, spec: object, metadata: object = {}): JsonObject {
  const [group, name, isNamespaced] = KINDS[kind];
  return {
    apiVersion: `${group}/v1`,
    kind: name,
    metadata: { name: 'one', ...(isNamespaced ? { namespace: 'shop' } : {}), ...metadata },
    spec,
  } as JsonObject;
}

export function review(
  kind: Kind,
  next: JsonObject,
  old?: JsonObject,
  more: Partial<OwnKindsReview> = {},
): OwnKindsReview {
  const [group, name] = KINDS[kind];
  const operation = old === undefined ? 'CREATE' : 'UPDATE';
  const request = {
    uid: 'u',
    operation,
    group,
    kind: name,
    subresource: '',
    name: 'one',
    namespace: '',
    username: 'me',
    userInfo: { username: 'me' },
  };
  return { ...request, object: next, oldObject: old, ...more };
}

export interface Found {
  /** `spec.module [module-reference]` */
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  readonly text: string;
}

export function validated(request: OwnKindsReview, options: Partial<OwnKindsRulesOptions> = {}): Found {
  const { error, warnings } = new OwnKindsRules({ controllerUser: CONTROLLER, ...options }).validate(request);
  const short = (field: string, text: string): string => `${field} ${/\[[a-z-]+\]$/.exec(text)?.[0] ?? '?'}`;
  const causes = error?.details?.causes ?? [];
  return {
    errors: causes.map(({ field, message }) => short(field ?? '', message ?? '')),
    warnings: warnings.map((text) => short(text.slice(0, text.indexOf(': ')), text)),
    text: error?.message ?? warnings.join('\n'),
  };
}

/** Title, kind, spec, errors, warnings, text of the message. */
export type Case = readonly [string, Kind, object, readonly string[], (readonly string[])?, RegExp?];

export const conditions = (...expressions: readonly string[]): object => ({
  ...SPEC,
  matchConditions: expressions.map((expression, index) => ({ name: `c${index}`, expression })),
});
export const module = (name: string, settings: object = {}): object => ({ ...SPEC, module: name, settings });
export const group = (expression: string, policies: object = {}): object => ({
  rules: [RULE],
  message: 'no',
  expression,
  policies: {
    first: BASELINE,
    second: { module: 'https://example.com/p.wasm' },
    ...policies,
  },
});
export const server = (spec: object): object => ({ image: 'example.com/portcullis:1', replicas: 2, ...spec });

/**
 * Declares a test for each case.
 * @param ignored what warnings end with that do not count: those about deletions have cases of their own
 */
export function itValidates(cases: readonly Case[], ignored = '[keeps-namespace]'): void {
  for (const [title, kind, spec, errors, warnings = [], text = /^/] of cases) {
    const outcome = errors.length > 0 ? 'rejects' : warnings.length > 0 ? 'warns of' : 'accepts';
    void it(`${outcome} ${kind} with ${title}`, () => {
      const found = validated(review(kind, object(kind, spec)));
      const others = found.warnings.filter((one) => !one.endsWith(ignored));
      assert.deepEqual([found.errors, others], [errors, warnings], found.text);
      assert.match(found.text, text);
    });
  }
}
