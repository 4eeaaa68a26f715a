import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type JsonObject,
  NETWORK_POLICY_PROVIDERS,
  NETWORK_POLICY_STATUSES,
  type NetworkPolicyProvider,
} from '../resources/index.ts';
import { ReportGuard } from './report-guard.ts';

const OURS = { controllerName: 'projectcalico.org/felix', reporter: 'portcullis-network-policy' };
const MINE = { controllerName: 'cilium.io/agent', reporter: 'cilium-operator' };

function provider(name: string, reporter?: NetworkPolicyProvider['spec']['reporter']): NetworkPolicyProvider {
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'NetworkPolicyProvider',
    metadata: { name },
    spec: { presence: 'Detected', ...(reporter === undefined ? {} : { reporter }) },
  };
}

const DECLARED = [
  provider('calico'),
  provider('cilium', { controllerName: MINE.controllerName, username: 'cilium', expireAfterSeconds: 600 }),
  // Takes a name that another one has.
  provider('later', { controllerName: MINE.controllerName, username: 'thief', expireAfterSeconds: 600 }),
];

interface Write {
  readonly username?: string;
  readonly status?: JsonObject;
  readonly oldStatus?: JsonObject;
  readonly isSynced?: boolean;
}

/** Why a write of a status is refused; empty if it is not. */
function refusal({ username = 'cilium', status = {}, oldStatus = {}, isSynced = true }: Write): string {
  const guard = new ReportGuard({ list: () => DECLARED, isSynced });
  const [object, oldObject] = [status, oldStatus].map((one) => ({ metadata: { name: 'web' }, status: one }));
  const write = { kind: NETWORK_POLICY_STATUSES, name: 'web', username, isStatus: true };
  return guard.refusal({ ...write, object: object ?? {}, oldObject })?.message ?? '';
}

describe('a status of a NetworkPolicy', () => {
  const before = { observedGeneration: 3, providers: [OURS] };
  const allowed: readonly (readonly [string, Write])[] = [
    ['an entry of one’s own', { status: { ...before, providers: [OURS, MINE] }, oldStatus: before }],
    [
      'an entry that replaces that of the controller',
      {
        status: { providers: [MINE] },
        oldStatus: { providers: [{ ...MINE, reporter: OURS.reporter, version: 'v1.15.4' }] },
      },
    ],
    ['an entry of one’s own that goes', { status: before, oldStatus: { ...before, providers: [OURS, MINE] } }],
    ['entries in another order', { status: { providers: [MINE, OURS] }, oldStatus: { providers: [OURS, MINE] } }],
  ];
  for (const [what, write] of allowed) {
    it(`may be written by a reporter: ${what}`, () => assert.equal(refusal(write), ''));
  }

  const own = { ...before, providers: [OURS, MINE] };
  const refused: readonly (readonly [string, Write, RegExp])[] = [
    [
      'an entry of another provider',
      { status: { providers: [{ ...OURS, reporter: 'x' }] }, oldStatus: before },
      /status\.providers\[projectcalico\.org\/felix\]: Forbidden: only its reporter writes it: yours is cilium\.io\/agent/,
    ],
    ['a removed entry of another provider', { status: { ...before, providers: [] }, oldStatus: before }, /felix/],
    [
      'an entry in the name of the controller',
      { status: { providers: [{ ...MINE, reporter: OURS.reporter }] } },
      /own/,
    ],
    ['an entry in no name', { status: { providers: [{ controllerName: MINE.controllerName }] } }, /\.reporter/],
    ['another user', { status: own, oldStatus: before, username: 'mallory' }, /user "mallory".*spec\.reporter/],
    ['a provider of a name that is taken', { status: own, oldStatus: before, username: 'thief' }, /cilium\.io\/agent/],
    [
      'the verdict',
      { status: { conditions: [{ type: 'Accepted' }] } },
      /status\.conditions: Forbidden: only the contr/,
    ],
    ['the generation', { status: { observedGeneration: 9 } }, /status\.observedGeneration/],
    ['a write before providers are known', { status: own, oldStatus: before, isSynced: false }, /Try again/],
  ];
  for (const [what, write, message] of refused) {
    it(`is not written otherwise: ${what}`, () => assert.match(refusal(write), message));
  }

  const created = (username: string, metadata: JsonObject = {}): string | undefined => {
    const guard = new ReportGuard({ list: () => DECLARED, isSynced: true });
    const object = { metadata: { name: 'web', ...metadata } };
    const write = { kind: NETWORK_POLICY_STATUSES, name: 'web', username, isStatus: false };
    return guard.refusal({ ...write, object, oldObject: undefined })?.message;
  };

  it('is created by reporters, for the NetworkPolicy of the same name', () => {
    const owner = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', name: 'web', uid: '1' };
    assert.equal(created('cilium'), undefined);
    assert.equal(created('cilium', { ownerReferences: [owner] }), undefined);
    assert.match(created('cilium', { ownerReferences: [{ ...owner, name: 'db' }] }) ?? '', /ownerReferences/);
    assert.match(created('cilium', { ownerReferences: [{ ...owner, kind: 'ConfigMap' }] }) ?? '', /ownerReferences/);
    assert.match(created('mallory') ?? '', /only the controller and reporters create it/);
  });
});

describe('the status of a NetworkPolicyProvider', () => {
  const write = (username: string, status: JsonObject, isStatus = true): string | undefined => {
    const guard = new ReportGuard({ list: () => DECLARED, isSynced: true });
    const spec = { reporter: { controllerName: 'cilium.io/agent', username: 'cilium' } };
    const [object, oldObject] = [status, { isPresent: 'True' }].map((one) => ({ spec, status: one }));
    const common = { kind: NETWORK_POLICY_PROVIDERS, name: 'cilium', username, isStatus };
    return guard.refusal({ ...common, object: object ?? {}, oldObject })?.message;
  };
  const renewTime = '2026-11-29T08:00:00Z';

  it('has the heartbeat of its reporter, and of nobody else', () => {
    assert.equal(write('cilium', { isPresent: 'True', renewTime }), undefined);
    assert.match(write('mallory', { isPresent: 'True', renewTime }) ?? '', /status\.renewTime: Forbidden/);
    assert.match(write('cilium', { isPresent: 'False', renewTime }) ?? '', /status\.isPresent: Forbidden/);
  });

  it('is all that is guarded: who may write the spec is said by RBAC', () => {
    assert.equal(write('admin', { isPresent: 'False' }, false), undefined);
  });
});
