import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubernetesObject, ResourceType } from '../../resources/index.ts';
import { servedKind } from '../testing/served-kind.ts';
import { EmbeddedCluster } from './embedded-cluster.ts';

const KINDS = ['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration'];

function configuration(kind: string, ...expressions: string[]): KubernetesObject {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind,
    metadata: { name: 'x' },
    webhooks: [
      {
        name: 'a.example.com',
        clientConfig: { url: 'https://example.com/' },
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
        matchConditions: expressions.map((expression, index) => ({ name: `condition-${index}`, expression })),
      },
    ],
  };
}

test('match conditions that do not compile are refused with an API server’s message', async () => {
  await using cluster = await EmbeddedCluster.open();
  for (const kind of KINDS) {
    const type = servedKind('admissionregistration.k8s.io/v1', kind) as ResourceType;
    const problems: Readonly<Record<string, string>> = {
      // The generated parser of API servers reports `no viable alternative` instead.
      'object.':
        "compilation failed: ERROR: <input>:1:8: Syntax error: mismatched input '<EOF>' expecting IDENTIFIER\n | object.\n | .......^",
      '1': 'must evaluate to bool but got int',
      'foo == 1':
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo == 1\n | ^",
    };
    for (const [expression, problem] of Object.entries(problems)) {
      await assert.rejects(cluster.admin.create(type, configuration(kind, 'true', expression)), {
        code: 422,
        message: `${kind}.admissionregistration.k8s.io "x" is invalid: webhooks[0].matchConditions[1].expression: Invalid value: ${JSON.stringify(expression)}: ${problem}`,
      });
    }
    const good = "authorizer.group('').resource('pods').check('get').allowed() && object.metadata.nope == 1";
    await cluster.admin.create(type, configuration(kind, good, 'object.metadata.isIt'));
  }
});
