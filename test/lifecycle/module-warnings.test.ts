// What users see when a policy does not grant what the metadata of its module state.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, it } from 'node:test';
import { writeMetadata } from '../../src/modules/index.ts';
import type { KubernetesObject, ResourceType } from '../../src/resources/index.ts';
import { EVENTS } from '../../src/runtime/index.ts';
import { guest, moduleBytes, TestFolder } from '../server/harness.ts';
import { kind, type Policy, PolicyLab } from './policy-lab.ts';

type EventObject = KubernetesObject & { readonly reason: string; readonly message: string };

describe('a policy whose module changes objects, with mutating: false', () => {
  it('serves, and status and event warn once for each revision', async () => {
    await using folder = await TestFolder.create();
    const file = join(folder.path, 'mutates.wasm');
    const metadata = {
      protocolVersion: 'v1',
      rules: [],
      annotations: {},
      mutating: true,
      backgroundAudit: true,
      policyType: 'kubernetes',
      contextAwareResources: [],
      hostCapabilities: [],
    } as const;
    await writeFile(file, writeMetadata(await moduleBytes(guest('accept')), metadata));
    await using lab = await PolicyLab.start();
    const policy = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'warned' },
      spec: {
        module: pathToFileURL(file).href,
        mutating: false,
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
      },
    };
    await lab.create(policy);
    const { status } = await lab.reaches(policy, 'Active');
    const warning = 'the module changes objects: if its settings let it change objects, set mutating: true';
    const message = `it may reject requests: ${warning}`;
    assert.deepEqual(status?.issues, [{ reason: 'MayReject', severity: 'Warning', message }]);
    assert.equal(status.message, `revision 1 serves on every replica, but ${message}`);
    await lab.reconciles('kw.cap.warned');
    const { items } = await lab.cluster.admin.list(EVENTS as ResourceType<EventObject>);
    const events = items.filter(({ reason }) => reason === 'MayReject');
    assert.deepEqual(
      events.map(({ message }) => message),
      [message],
    );

    const type = kind<Policy>(policy.apiVersion, policy.kind);
    await lab.merge(type, { name: 'warned' }, { spec: { mutating: true } });
    await lab.sees(type, { name: 'warned' }, (one) => one?.status?.desiredRevision === 2);
    const granted = await lab.reaches(policy, 'Active');
    assert.equal(granted.status?.issues, undefined);
    assert.equal(granted.status?.message, 'revision 2 serves on every replica');
  });
});
