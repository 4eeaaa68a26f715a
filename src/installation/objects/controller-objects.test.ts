import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { installValues } from '../read-values.ts';
import { controllerDeployment } from './controller-objects.ts';

describe('the pods of the controller', () => {
  it('and those of policy servers listen on the address of the values', () => {
    const addresses = (given: object): readonly string[] => {
      const values = installValues(given, '1.0.0', 'values.yaml');
      const text = JSON.stringify(controllerDeployment({ namespace: 'portcullis', values }));
      return [...text.matchAll(/"--([a-z-]+-addr=[^"]+)"/g)].map(([, argument = '']) => argument);
    };
    const flags = ['policy-server-addr', 'webhook-addr', 'operations-addr', 'control-addr'];
    assert.deepEqual(
      addresses({}),
      flags.map((flag) => `${flag}=0.0.0.0`),
    );
    assert.deepEqual(
      addresses({ listenAddress: '::' }),
      flags.map((flag) => `${flag}=::`),
    );
  });
});
