// `portcullis break-glass` on the cluster of `portcullis start`, whose controller runs. Without one: test/lifecycle/disaster.test.ts,
// and on the API server of Kubernetes test/e2e/install.test.ts.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import type { CommandResult } from './command.ts';
import { StartedPortcullis, WITHOUT_AUDITOR } from './started.ts';

const NAME = 'clusteradmissionpolicy.policies.kubewarden.io/no-pods';
/** The discard port, where nothing listens. */
const ABSENT = 'http://127.0.0.1:9/absent.wasm';

function policy(spec: object = {}): string {
  return JSON.stringify({
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: 'no-pods' },
    spec: {
      module: 'builtin:cel',
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
      settings: { validations: [{ expression: 'false', message: 'no pods' }] },
      ...spec,
    },
  });
}

const POD = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web' },
  spec: { containers: [{ name: 'main', image: 'nginx' }] },
});

function succeeded({ code, stdout, stderr }: CommandResult): string {
  assert.equal(code, 0, stderr + stdout);
  return stdout;
}

describe('portcullis break-glass', { skip: skipWithoutCluster() }, () => {
  let started: StartedPortcullis;
  before(async () => {
    started = await StartedPortcullis.start(WITHOUT_AUDITOR);
    succeeded(await started.portcullis(['apply', '-f', '-'], policy()));
    succeeded(await started.portcullis(['rollout', 'status', 'cap/no-pods', '--timeout', '20s']));
  });
  after(() => started[Symbol.asyncDispose]());

  const breakGlass = (...args: readonly string[]): Promise<CommandResult> =>
    started.portcullis(['break-glass', ...args]);
  const podIs = async (expected: RegExp): Promise<void> => {
    await eventually(async () => {
      const { stdout, stderr } = await started.portcullis(['apply', '-f', '-', '--dry-run'], POD);
      assert.match(stdout + stderr, expected);
    });
  };
  const enforced = async (): Promise<string> => {
    const { stdout } = await started.portcullis(['get', 'cap', 'no-pods', '-o', 'json']);
    const { status } = JSON.parse(stdout) as {
      readonly status: { readonly conditions: readonly { readonly type: string; readonly message: string }[] };
    };
    return status.conditions.find(({ type }) => type === 'Enforced')?.message ?? '';
  };

  it('disarms a policy, says so everywhere, and arms it again', async () => {
    await podIs(/no pods/);
    assert.equal(succeeded(await breakGlass('disarm', 'cap/no-pods', '--reason', 'INC-1')), `${NAME} disarmed\n`);
    await podIs(/created/);
    assert.equal(await enforced(), 'requests are admitted without the policy: it is disarmed (INC-1)');
    assert.equal(succeeded(await breakGlass('status')), `${NAME}: INC-1\n`);
    const { code, stderr } = await started.portcullis(['rollout', 'status', 'cap/no-pods']);
    assert.notEqual(code, 0);
    assert.match(stderr, /Error: Disarmed: disarmed \(INC-1\)/);
    assert.equal(succeeded(await breakGlass('rearm', 'cap/no-pods')), `${NAME} armed again\n`);
    await podIs(/no pods/);
    assert.equal(succeeded(await breakGlass('status')), 'Nothing is disarmed.\n');
    assert.equal(succeeded(await breakGlass('rearm', 'cap/no-pods')), `${NAME} is not disarmed\n`);
  });

  it('arms what served last, although a newer revision cannot be fetched', async () => {
    succeeded(await breakGlass('disarm', 'cap/no-pods', '--reason', 'INC-2'));
    await podIs(/created/);
    succeeded(await started.portcullis(['apply', '-f', '-'], policy({ module: ABSENT, settings: {} })));
    succeeded(await breakGlass('rearm', 'cap/no-pods'));
    await podIs(/no pods/);
    await eventually(async () => assert.equal(await enforced(), 'revision 1 answers requests'));
    succeeded(await started.portcullis(['apply', '-f', '-'], policy()));
    succeeded(await started.portcullis(['rollout', 'status', 'cap/no-pods', '--timeout', '20s']));
  });

  it('disarms all policies of all PolicyServers', async () => {
    succeeded(await breakGlass('disarm', '--all', '--reason', 'INC-3'));
    await podIs(/created/);
    assert.equal(succeeded(await breakGlass('status')), 'policyserver.policies.kubewarden.io/default: INC-3\n');
    succeeded(await breakGlass('rearm', '--all'));
    await podIs(/no pods/);
  });

  for (const [args, message] of [
    [['disarm', '--reason', 'INC-4'], /expected either a policy, or --all or --policy-server/],
    [['disarm', 'cap/no-pods'], /required option '--reason <text>' not specified/],
    [['disarm', 'cap/no-pods', '--reason', ' '], /--reason: expected 1 to 200 printable characters/],
    [['disarm', 'cap/absent', '--reason', 'INC-4'], /"absent" not found/],
    [['rearm', 'cap/no-pods', '--all'], /expected either a policy, or --all or --policy-server/],
  ] as const) {
    it(`refuses ${args.join(' ')}`, async () => {
      const { code, stderr } = await breakGlass(...args);
      assert.notEqual(code, 0);
      assert.match(stderr, message);
    });
  }
});
