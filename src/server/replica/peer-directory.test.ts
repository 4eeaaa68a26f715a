import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ControllerReplica, PolicyServerReplica } from '../../resources/index.ts';
import { ObjectStore } from '../../runtime/index.ts';
import { PeerDirectory } from './peer-directory.ts';

let version = 0;
function replica(
  name: string,
  controlAddress?: string,
  policyServer = 'default',
  namespace = 'n',
): PolicyServerReplica {
  version += 1;
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyServerReplica',
    metadata: { name, namespace, uid: name, resourceVersion: String(version) },
    spec: { policyServer, ...(controlAddress === undefined ? {} : { controlAddress }) },
  };
}

function controller(name: string, controlAddress: string, rest: object = {}): ControllerReplica {
  version += 1;
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'ControllerReplica',
    metadata: { name, namespace: 'n', uid: name, resourceVersion: String(version) },
    spec: { controlAddress, ...rest },
  };
}

describe('PeerDirectory', () => {
  it('knows the other replicas of the same server in the same namespace', () => {
    const replicas = new ObjectStore<PolicyServerReplica>();
    replicas.replace([
      replica('me', '10.0.0.1:1'),
      replica('b', '10.0.0.3:1'),
      replica('a', '10.0.0.2:1'),
      replica('silent'),
      replica('other-server', '10.0.0.4:1', 'other'),
      replica('other-namespace', '10.0.0.5:1', 'default', 'm'),
    ]);
    const controllers = new ObjectStore<ControllerReplica>();
    controllers.replace([controller('d', '10.0.1.2:1'), controller('c', '10.0.1.1:1')]);
    const directory = new PeerDirectory({ replicas, controllers, namespace: 'n', policyServer: 'default', name: 'me' });
    assert.deepEqual(directory.addresses(), {
      replicas: ['10.0.0.2:1', '10.0.0.3:1'],
      controllers: ['10.0.1.1:1', '10.0.1.2:1'],
    });
  });

  it('reports that another replica has loaded what it could not load', () => {
    const replicas = new ObjectStore<PolicyServerReplica>();
    const controllers = new ObjectStore<ControllerReplica>();
    const directory = new PeerDirectory({ replicas, controllers, namespace: 'n', policyServer: 'default', name: 'me' });
    const reported: boolean[] = [];
    directory.subscribe((_, hasNewModules) => reported.push(hasNewModules));
    const says = (name: string, startedAt: string, failedRevisions: number): void => {
      const object = { ...replica(name, `${name}:1`), status: { failedRevisions, startedAt } };
      replicas.apply({ type: 'MODIFIED', object });
    };
    replicas.replace([replica('me', 'me:1'), replica('a', 'a:1')]);
    reported.length = 0;
    const start = '2026-01-01T00:00:00Z';
    says('a', start, 2);
    says('a', start, 3);
    assert.deepEqual(reported, [], 'more failures');
    says('a', start, 1);
    assert.deepEqual(reported, [true]);
    says('a', '2026-01-01T00:01:00Z', 0);
    assert.deepEqual(reported, [true], 'a new process, which has tried nothing');
    says('me', start, 2);
    says('me', start, 1);
    assert.deepEqual(reported, [true], 'the replica itself');
  });

  it('reports only changes of addresses', () => {
    const replicas = new ObjectStore<PolicyServerReplica>();
    const controllers = new ObjectStore<ControllerReplica>();
    const directory = new PeerDirectory({ replicas, controllers, namespace: 'n', policyServer: 'default', name: 'me' });
    const reported: string[] = [];
    const end = directory.subscribe((addresses, hasNewModules) =>
      reported.push([...addresses.replicas, ...addresses.controllers, ...(hasNewModules ? ['new'] : [])].join()),
    );
    const object = replica('a', 'a:1');
    replicas.apply({ type: 'ADDED', object });
    replicas.apply({ type: 'MODIFIED', object: { ...replica('a', 'a:1'), status: { servingRevisions: 1 } } });
    replicas.apply({ type: 'ADDED', object: replica('me', 'me:1') });
    replicas.apply({ type: 'MODIFIED', object: replica('a', 'a:2') });
    replicas.apply({ type: 'DELETED', object: replica('a', 'a:2') });
    controllers.apply({ type: 'ADDED', object: controller('c', 'c:1') });
    const startedAt = '2026-01-01T00:00:00Z';
    controllers.apply({ type: 'MODIFIED', object: controller('c', 'c:1', { startedAt }) });
    controllers.apply({ type: 'MODIFIED', object: controller('c', 'c:1', { startedAt, version: '2' }) });
    end();
    replicas.apply({ type: 'ADDED', object: replica('b', 'b:1') });
    assert.deepEqual(reported, ['', 'a:1', 'a:2', '', 'c:1,new', 'c:1,new']);
  });
});
