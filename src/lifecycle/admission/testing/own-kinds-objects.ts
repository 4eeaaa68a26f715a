// Objects of our own kinds for tests, and reproducible random numbers.

export const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] };

/** A valid spec of a policy. */
const SPEC = {
  module: 'builtin:pod-security',
  settings: { enforce: 'baseline' },
  mutating: false,
  rules: [RULE],
};

/** A type, because an interface would not be assignable to JSON objects. */
type TestObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: object;
};

export function policy(name: string, spec: object = {}): TestObject {
  const apiVersion = 'policies.kubewarden.io/v1';
  return { apiVersion, kind: 'ClusterAdmissionPolicy', metadata: { name }, spec: { ...SPEC, ...spec } };
}

export function revision(name: string): TestObject {
  const of = { apiVersion: 'policies.kubewarden.io/v1', kind: 'ClusterAdmissionPolicy', name: 'x', uid: 'u' };
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyRevision',
    metadata: { name, namespace: 'default' },
    spec: { policy: of, policyId: 'x', policyServer: 'default', revision: 1, policyGeneration: 1, snapshot: SPEC },
  };
}

/** Reproducible random numbers from 0 to below 1 (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
