// Processes end soon after SIGTERM, where a policy keeps one of their threads in native code. The other roles: serve.test.ts and
// controller.test.ts.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { it } from 'node:test';
import { eventually } from '../cluster/eventually.ts';
import { ROOT } from './command.ts';
import { ManagedInstallation } from './managed-installation.ts';
import { StartedPortcullis } from './started.ts';

const NODE_FLAGS = ['--import', join(ROOT, 'test/fixtures/stuck-threads.mjs')];
/** Until a thread has worked for as long as no deadline allows. */
const PATIENCE = { timeoutMs: 60_000 };

it('start ends soon after SIGTERM where a policy keeps its threads in native code', { timeout: 120_000 }, async () => {
  await using started = await StartedPortcullis.startWithNode(NODE_FLAGS);
  const policy = readFileSync(join(ROOT, 'examples/pinned-images/policy.yaml'), 'utf8').replace(
    'variables.unpinned.size() == 0',
    "object.metadata.name != 'stuck in native code'",
  );
  const { stderr } = await started.portcullis(['apply', '-f', '-'], policy);
  assert.match(stderr, /it takes more than 5 s to check/);
  // The process of the threads does not end by its own exit, for which Node waits for each thread.
  assert.equal(await started.end('SIGTERM'), 0);
});

it('so does a controller that manages policy servers', { timeout: 120_000 }, async () => {
  await using installation = await ManagedInstallation.open('own');
  const flags = { 'webhook-port': 0, 'webhook-addr': '127.0.0.1', 'operations-port': 0 };
  await using controller = installation.controller(flags, NODE_FLAGS);
  const { webhook } = await controller.says('controller ready');
  const object = {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: 'stuck' },
    spec: {
      module: 'builtin:cel',
      settings: { validations: [{ expression: "object.metadata.name != 'stuck in native code'" }] },
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
    },
  };
  const kind = { group: 'policies.kubewarden.io', version: 'v1', kind: 'ClusterAdmissionPolicy' };
  const review = {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: { uid: 'a', kind, object, operation: 'CREATE' },
  };
  const asked = request(`${String(webhook)}/validate-own-kinds`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    rejectUnauthorized: false,
  });
  asked.on('error', () => undefined).end(JSON.stringify(review));
  await eventually(async () => assert.ok(controller.hasStuckThread()), PATIENCE);
  controller.signal('SIGTERM');
  await controller.says('stopped');
  assert.equal(await controller.ended(), null, 'it ends with its thread');
});
