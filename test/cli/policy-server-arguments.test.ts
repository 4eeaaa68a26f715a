// The command line accepts the arguments of policy servers' pods.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serveCommand } from '../../src/cli/serve/serve.ts';
import { policyServerObjects } from '../../src/lifecycle/index.ts';
import { EVERYTHING, policyServer, SETTINGS } from '../../src/lifecycle/policy-servers/testing/policy-servers.ts';

describe('the arguments of the pods of policy servers', () => {
  for (const [what, spec] of Object.entries({
    'nothing but what is required': {},
    everything: EVERYTHING,
    'no capability': { namespacedPoliciesCapabilities: [] },
  })) {
    it(`are valid for a PolicyServer with ${what}`, () => {
      const verification = what === 'everything' ? { verificationConfig: 'a', sigstoreTrustConfig: 'b' } : {};
      const { Deployment } = policyServerObjects(policyServer(spec), SETTINGS, [], verification);
      const [, list = '[]'] = /"args":(\[.*?\])/.exec(JSON.stringify(Deployment)) ?? [];
      const [name, ...args] = JSON.parse(list) as readonly string[];
      assert.equal(name, 'serve');
      let flags: Readonly<Record<string, unknown>> = {};
      const command = serveCommand()
        .exitOverride()
        .action((given: Readonly<Record<string, unknown>>) => void (flags = given));
      command.parse(args, { from: 'user' });
      assert.equal(flags['policyServer'], 'default');
      assert.equal(flags['inCluster'], true);
      assert.equal(flags['shutdownDelay'], 10);
      const given = 'namespacedPoliciesCapabilities' in spec ? spec.namespacedPoliciesCapabilities : [];
      assert.deepEqual(flags['namespacedPoliciesCapabilities'], given);
    });
  }
});
