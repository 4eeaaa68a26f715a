import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { POLICY_SERVER_LABEL, policyId, revisionName } from './policy-names.ts';
import type { PolicyRevision } from './policy-revision.ts';
import { revisionMismatch } from './revision-identity.ts';

interface Changes {
  readonly name?: string;
  readonly label?: string;
  readonly policy?: unknown;
  readonly spec?: object;
}

function revision(kind: string, name: string, namespace?: string, changes: Changes = {}): PolicyRevision {
  const of = { name, ...(namespace === undefined ? {} : { namespace }) };
  const id = policyId({ kind, metadata: of });
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyRevision',
    metadata: {
      name: changes.name ?? revisionName(id, 3),
      namespace: 'portcullis',
      labels: { [POLICY_SERVER_LABEL]: changes.label ?? 'default' },
    },
    spec: {
      policy: changes.policy ?? { apiVersion: 'policies.kubewarden.io/v1', kind, ...of, uid: 'u' },
      policyId: id,
      policyServer: 'default',
      revision: 3,
      policyGeneration: 1,
      snapshot: {},
      ...changes.spec,
    },
  } as PolicyRevision;
}

describe('revisionMismatch', () => {
  it('finds nothing in revisions of the controller', () => {
    for (const [kind, namespace] of [
      ['ClusterAdmissionPolicy', undefined],
      ['ClusterAdmissionPolicyGroup', undefined],
      ['AdmissionPolicy', 'shop'],
      ['AdmissionPolicyGroup', 'shop'],
    ] as const) {
      assert.equal(revisionMismatch(revision(kind, 'p', namespace)), undefined);
      assert.equal(revisionMismatch(revision(kind, `${'x'.repeat(60)}.`.repeat(4) + 'y', namespace)), undefined, 'cut');
    }
  });

  const cap = (changes: Changes): PolicyRevision => revision('ClusterAdmissionPolicy', 'p', undefined, changes);
  const of = (kind: string, name: unknown, namespace?: unknown): object => ({ kind, name, namespace, uid: 'u' });
  for (const [what, one, message] of [
    ['another id', cap({ spec: { policyId: 'kw.cap.q' } }), /policyId: expected kw\.cap\.p, .* got "kw\.cap\.q"/],
    [
      'a tenant as the cluster',
      cap({ policy: of('AdmissionPolicy', 'p', 'shop') }),
      /policyId: expected kw\.ap\.shop\.p/,
    ],
    ['no namespace', cap({ policy: of('AdmissionPolicy', 'p') }), /expected a namespace for kind AdmissionPolicy/],
    [
      'a namespace',
      cap({ policy: of('ClusterAdmissionPolicy', 'p', 'shop') }),
      /expected no namespace for kind Cluster/,
    ],
    ['a namespace with dots', cap({ policy: of('AdmissionPolicy', 'p', 'a.b') }), /expected the name of a namespace/],
    [
      'a hostile name',
      cap({ policy: of('ClusterAdmissionPolicy', '../x?y#') }),
      /policy\.name: expected the name of an/,
    ],
    ['an inherited kind', cap({ policy: of('constructor', 'p') }), /expected a kind of policies that have revisions/],
    [
      'a kind of another group',
      cap({ policy: of('__proto__', 'p') }),
      /expected a kind of policies that have revisions/,
    ],
    [
      'a second one of a number',
      cap({ name: 'kw.cap.p-3-b' }),
      /metadata\.name: expected kw\.cap\.p-3, .* got "kw\.cap\.p-3-b"/,
    ],
    ['another number', cap({ spec: { revision: 4 } }), /metadata\.name: expected kw\.cap\.p-4/],
    ['a number beyond those of JavaScript', cap({ spec: { revision: 2 ** 63 } }), /revision: expected a whole number/],
    [
      'another policy server',
      cap({ label: 'blue' }),
      /labels\[portcullis\.dev\/policy-server\]: expected default, .* got "blue"/,
    ],
    ['no policy', cap({ spec: { policy: null } }), /expected the fields of a PolicyRevision/],
    ['no names', cap({ policy: of('AdmissionPolicy', 7, {}) }), /expected/],
    [
      'no spec',
      { metadata: {}, spec: undefined } as unknown as PolicyRevision,
      /expected the fields of a PolicyRevision/,
    ],
  ] as const) {
    it(`finds ${what}`, () => assert.match(revisionMismatch(one) ?? '', message));
  }
});
