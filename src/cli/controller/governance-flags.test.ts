import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Command, CommanderError } from 'commander';
import type { GovernanceSettings } from '../../governance/settings/index.ts';
import { CliError } from '../errors.ts';
import { addGovernanceFlags, type GovernanceFlags, governanceSettings } from './governance-flags.ts';

function settingsOf(...args: readonly string[]): GovernanceSettings | undefined {
  const command = addGovernanceFlags(new Command())
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  command.parse(args, { from: 'user' });
  return governanceSettings(command.opts<GovernanceFlags>(), 'portcullis');
}

describe('flags of governance', () => {
  it('apply Policies of all but the exempt namespaces by default', () => {
    assert.deepEqual(settingsOf(), {
      mode: 'standalone',
      clusterName: 'local-cluster',
      namespaces: undefined,
      exemptNamespaces: ['kube-system', 'kube-public', 'kube-node-lease', 'portcullis'],
    });
    assert.deepEqual(settingsOf('--governance-namespaces='), settingsOf());
  });

  it('name the mode, the cluster and the namespaces', () => {
    const { mode, clusterName, namespaces } =
      settingsOf('--governance-mode=hub', '--cluster-name=prod', '--governance-namespaces=a,b,a') ?? {};
    assert.deepEqual([mode, clusterName, namespaces], ['hub', 'prod', ['a', 'b']]);
  });

  for (const [args, isOn] of [
    [['--governance'], true],
    [['--governance=true'], true],
    [['--no-governance'], false],
    [['--governance=false'], false],
  ] as const) {
    it(`${args.join(' ')} means ${isOn ? 'on' : 'off'}`, () => {
      assert.equal(settingsOf(...args) !== undefined, isOn);
    });
  }

  for (const arg of [
    '--governance=maybe',
    '--governance-mode=both',
    '--cluster-name=Prod',
    '--cluster-name=',
    '--governance-namespaces=a b',
  ]) {
    it(`refuse ${arg}`, () => assert.throws(() => settingsOf(arg), CommanderError));
  }

  it('refuse the namespace of Portcullis as that of the cluster, whose Policies everybody with rights there could write', () => {
    assert.throws(() => settingsOf('--cluster-name=portcullis'), CliError);
  });
});
