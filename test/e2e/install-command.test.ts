// The life of an installation by the command, on a real API server with Pods as processes. The tests depend on each other.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { InstallLab } from './install-lab.ts';

describe('Portcullis, installed with the command', { skip: skipWithoutCluster() }, () => {
  let lab: InstallLab;
  before(async () => {
    lab = await InstallLab.start();
  });
  after(() => (lab as InstallLab | undefined)?.[Symbol.asyncDispose]());

  /** Runs a command of the product, which must succeed. Returns its outputs. */
  const done = async (...args: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await lab.command(...args);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}${stdout}`);
    return `${stdout}${stderr}`;
  };

  it('has no findings on a fresh cluster', async () => {
    assert.match(
      (await lab.command('doctor')).stdout,
      /^error NotInstalled: cluster\n(?:.*\n){3}1 errors, 0 warnings\.\n$/,
    );
    await done('install');
    assert.equal(await done('doctor', '--fail-on', 'warning'), 'No problems found.\n');
  });
});
