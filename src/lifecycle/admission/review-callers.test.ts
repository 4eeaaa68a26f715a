// Clients of the webhook for our own kinds: API servers, and anybody else who reaches its port.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { ApiError, type Cluster, SUBJECT_ACCESS_REVIEWS } from '../../cluster/index.ts';
import { ensureLocalCertificates, type LocalCertificates } from '../../control/certificates/index.ts';
import {
  ADMISSION_POLICIES,
  ANNOTATIONS,
  customResourceDefinition,
  type JsonObject,
  knownKind,
  type KubernetesObject,
  OWN_KINDS,
} from '../../resources/index.ts';
import { SharedCaches } from '../../runtime/index.ts';
import { ContributedKindsStub } from './testing/contributed-kinds-stub.ts';
import { OwnKindsWebhook, type OwnKindsWebhookOptions } from './own-kinds-webhook.ts';
import { addressList, ENDPOINT_SLICES } from './review-callers.ts';

const CONTROLLER = 'system:serviceaccount:portcullis:portcullis-controller';
const RBAC = 'rbac.authorization.k8s.io/v1';
/** Every address of 127.0.0.0/8 reaches a server on loopback. */
const API_SERVER = '127.0.0.1';
const POD = '127.0.0.2';
const OTHER_POD = '127.0.0.3';
const log = pino({ level: 'silent' });

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: string;
}

interface Webhook extends AsyncDisposable {
  /** Sends a review from an address. */
  readonly send: (review: object, from?: string, path?: string) => Promise<Answer>;
  readonly registered: Promise<void>;
}

function spec(...resources: readonly string[]): JsonObject {
  const rule = { apiGroups: [''], apiVersions: ['v1'], resources: [...resources], operations: ['CREATE'] };
  return {
    module: 'builtin:cel',
    settings: { validations: [{ expression: 'true' }] },
    mutating: false,
    policyServer: 'default',
    rules: [rule, rule],
  };
}

function policy(one: JsonObject, name = 'p'): KubernetesObject {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'AdmissionPolicy',
    metadata: { name, namespace: 'shop' },
    spec: one,
  };
}

/** What anybody may send: that a user creates a policy. */
function review(username: string, object: KubernetesObject): object {
  return {
    request: {
      uid: 'u',
      operation: 'CREATE',
      kind: { group: 'policies.kubewarden.io', version: 'v1', kind: object.kind },
      namespace: 'shop',
      name: object.metadata.name,
      userInfo: { username, groups: ['system:authenticated'] },
      object,
    },
  };
}

const textOf = (answer: Answer): string => answer.body.replaceAll(/alice|mallory/g, 'USER');

describe('clients of the webhook for our own kinds', () => {
  let folder: string;
  let certificates: LocalCertificates;
  let cluster: EmbeddedCluster;
  let admin: Cluster;
  let accessReviews = 0;

  async function start(options: Partial<OwnKindsWebhookOptions> = {}): Promise<Webhook> {
    const groups = ['system:masters', 'system:authenticated'];
    const controller = cluster.as({ username: CONTROLLER, groups });
    const counting: Cluster = Object.assign(Object.create(controller) as Cluster, {
      get: controller.get.bind(controller),
      list: controller.list.bind(controller),
      update: controller.update.bind(controller),
      create: (...args: Parameters<Cluster['create']>) => {
        accessReviews += args[0] === (SUBJECT_ACCESS_REVIEWS as unknown) ? 1 : 0;
        return controller.create(...args);
      },
    });
    const caches = new SharedCaches({ cluster: controller, log });
    const ca = readFileSync(certificates.caFile, 'utf8');
    const webhook = new OwnKindsWebhook({
      cluster: counting,
      caches,
      namespace: 'portcullis',
      ca,
      log,
      controllerUser: CONTROLLER,
      host: '127.0.0.1',
      port: 0,
      tls: certificates,
      ...options,
    });
    const aborting = new AbortController();
    const running = [webhook.registration, caches, webhook].map((runnable) => runnable.start(aborting.signal));
    const url = await webhook.url;
    return {
      registered: webhook.registration.ready,
      send: (body, from = POD, path = '/validate-own-kinds') => {
        const { promise, resolve, reject } = Promise.withResolvers<Answer>();
        const sent = httpsRequest(
          `${url}${path}`,
          { method: 'POST', ca, localAddress: from, headers: { 'content-type': 'application/json' }, agent: false },
          (incoming) => {
            let text = '';
            incoming.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
            const { statusCode: status = 0, headers } = incoming;
            incoming.on('end', () => resolve({ status, body: text, retryAfter: headers['retry-after'] }));
          },
        );
        sent.on('error', reject).end(JSON.stringify(body));
        return promise;
      },
      [Symbol.asyncDispose]: async () => {
        aborting.abort();
        await Promise.all(running);
      },
    };
  }

  const make = (apiVersion: string, kind: string, object: object): Promise<unknown> =>
    admin.create(knownKind(apiVersion, kind), { apiVersion, kind, ...object } as never);

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-callers-'));
    certificates = await ensureLocalCertificates(join(folder, 'pki'));
    const read = (file: string): string => readFileSync(file, 'utf8');
    cluster = await EmbeddedCluster.open({
      webhookIdentity: { cert: read(certificates.controlCertFile), key: read(certificates.controlKeyFile) },
    });
    admin = cluster.admin;
    for (const kind of OWN_KINDS) {
      await admin.create(
        knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
        customResourceDefinition(kind),
      );
    }
    await make('v1', 'Namespace', { metadata: { name: 'shop' } });
    await make('v1', 'Namespace', { metadata: { name: 'portcullis' } });
    const all = ['policies.kubewarden.io', ''];
    await make(RBAC, 'Role', {
      metadata: { name: 'alice', namespace: 'shop' },
      rules: [{ apiGroups: all, resources: ['secrets', 'admissionpolicies'], verbs: ['*'] }],
    });
    await make(RBAC, 'RoleBinding', {
      metadata: { name: 'alice', namespace: 'shop' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'alice' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'alice' }],
    });
  });
  after(async () => {
    await cluster.close();
    rmSync(folder, { recursive: true });
  });

  it('are told nothing of what a user lacks, unless they are API servers', async () => {
    await using webhook = await start();
    const answers = [
      ['alice', 'pods'],
      ['alice', 'configmaps'],
      ['mallory', 'secrets'],
    ].map(([user = '', resource = '']) => webhook.send(review(user, policy(spec(resource)))));
    const texts = new Set((await Promise.all(answers)).map(textOf));
    assert.equal(texts.size, 1, [...texts].join('\n'));
    const [text = ''] = texts;
    assert.match(text, /"code":403/);
    assert.match(text, /lacks rights to what the policy matches or reads, or they could not be checked/);
    assert.doesNotMatch(text, /pods|secrets|configmaps|causes/);
  });

  it('are told nothing of what PolicyServers allow, and of no other objects', async () => {
    const contributed = [new ContributedKindsStub()];
    await using webhook = await start({ tenantModules: () => ['registry://ghcr.io/secret/name:v1'], contributed });
    const module = (name: string): object =>
      review('alice', policy({ ...spec('secrets'), module: `registry://ghcr.io/${name}` }));
    const { body } = await webhook.send(module('other/name:v1'));
    assert.match(body, /its PolicyServer does not allow it/);
    assert.doesNotMatch(body, /secret\/name/);
    const [kind] = contributed[0]?.kinds ?? [];
    assert.ok(kind);
    const { group, version, kind: name } = kind;
    const object = {
      apiVersion: `${group}/${version}`,
      kind: name,
      metadata: { name: 'p', namespace: 'shop' },
      spec: {},
    };
    const sent = review('alice', object) as { request: object };
    const answer = await webhook.send({ request: { ...sent.request, kind: { group, version, kind: name } } });
    assert.match(answer.body, /"allowed":true/);
    assert.doesNotMatch(answer.body, /did you mean/);
  });

  it('are told what is wrong with an object by itself', async () => {
    await using webhook = await start();
    const { body } = await webhook.send(review('alice', policy({ ...spec('secrets'), sideEffects: 'Some' })));
    assert.match(body, /\[side-effects\]/);
  });

  it('cause one access review for each distinct question', async () => {
    await using webhook = await start({ apiServers: [API_SERVER] });
    accessReviews = 0;
    const two = review('alice', policy({ ...spec('secrets', 'pods', 'secrets'), mutating: true }));
    const { body } = await webhook.send(two, API_SERVER);
    // create and update, of secrets and pods
    assert.equal(accessReviews, 4);
    assert.match(body, /user \\"alice\\" may not create, update pods/);
    accessReviews = 0;
    const metadata = { ...policy({}).metadata, annotations: { [ANNOTATIONS.rollbackTo]: '1' } };
    const sent = review('alice', { ...policy(spec('secrets')), metadata }) as { request: object };
    const request = { ...sent.request, operation: 'UPDATE', oldObject: policy(spec('pods')) };
    const restored = await webhook.send({ request }, API_SERVER);
    assert.match(restored.body, /"allowed":true/);
    // get of secrets, for the spec, and for the revision that the annotation restores
    assert.equal(accessReviews, 1);
  });

  it('have a budget each, and leave API servers theirs', async () => {
    await make('discovery.k8s.io/v1', 'EndpointSlice', {
      metadata: { name: 'kubernetes', namespace: 'default', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [API_SERVER] }],
      ports: [{ name: 'https', port: 6443, protocol: 'TCP' }],
    });
    await using webhook = await start();
    const large = spec(...Array.from({ length: 60 }, (_, index) => `kind${index}s`));
    const flood = async (from: string): Promise<Answer> => {
      for (let count = 0; count < 200; count += 1) {
        const answer = await webhook.send(review('alice', policy(large)), from);
        if (answer.status === 429) {
          return answer;
        }
      }
      return assert.fail('the address was never refused');
    };
    accessReviews = 0;
    assert.equal((await flood(POD)).retryAfter, '1');
    assert.ok(accessReviews < 1_000, `${accessReviews} access reviews`);
    for (const from of [OTHER_POD, API_SERVER]) {
      const other = await webhook.send(review('alice', policy(spec('secrets'))), from);
      assert.match(other.body, /"allowed":true/);
    }
  });

  it('have few reviews under way, however long each takes', async () => {
    await using webhook = await start({ apiServers: undefined });
    const expression = `[${'1, '.repeat(20_000)}1].size() > 0`;
    const costly = review('alice', policy({ ...spec('secrets'), matchConditions: [{ name: 'a', expression }] }));
    const answers = await Promise.all(Array.from({ length: 6 }, () => webhook.send(costly)));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200, 429]));
    assert.equal((await webhook.send(review('alice', policy(spec('secrets'))))).status, 200);
  });

  it('are known as API servers by the addresses of the Service kubernetes', async () => {
    await using webhook = await start();
    const slice = { namespace: 'default', name: 'kubernetes' };
    const endpoints = [{ addresses: [OTHER_POD] }];
    await admin.patch(ENDPOINT_SLICES, slice, { type: 'merge', body: { endpoints } });
    const answer = await webhook.send(review('alice', policy(spec('pods'))), OTHER_POD);
    assert.match(answer.body, /may not get pods/);
    assert.doesNotMatch((await webhook.send(review('alice', policy(spec('pods'))))).body, /may not get pods/);
  });

  it('are known as API servers by the address that they call from, which only they can prove', async () => {
    await using webhook = await start();
    await webhook.registered;
    const alice = cluster.as({ username: 'alice', groups: ['system:authenticated'] });
    await assert.rejects(alice.create(ADMISSION_POLICIES, policy(spec('pods'))), /may not get pods/);
    const forged = review(CONTROLLER, policy({}, 'portcullis-caller-00000000000000000000000000000000'));
    assert.equal((await webhook.send(forged, POD, '/prove-caller')).status, 200);
    const sent = async (from: string): Promise<string> =>
      (await webhook.send(review('alice', policy(spec('pods'))), from)).body;
    assert.doesNotMatch(await sent(POD), /may not get pods/);
    assert.match(await sent(API_SERVER), /may not get pods/);
  });

  it('are refused where the addresses of API servers are configured', async () => {
    await using webhook = await start({ apiServers: ['127.0.0.3/32', '2001:db8::/64'] });
    accessReviews = 0;
    const { status, body } = await webhook.send(review('alice', policy(spec('secrets'))));
    assert.equal(status, 403);
    assert.doesNotMatch(body, /alice/);
    assert.equal(accessReviews, 0);
  });

  it('need a certificate where the port has a CA for them, and API servers with one say what is missing', async () => {
    await using webhook = await start({ tls: { ...certificates, clientCaFiles: [certificates.caFile] } });
    await webhook.registered;
    await assert.rejects(webhook.send(review('alice', policy(spec('secrets'))), API_SERVER), /certificate required/);
    const alice = cluster.as({ username: 'alice', groups: ['system:authenticated'] });
    await assert.rejects(alice.create(ADMISSION_POLICIES, policy(spec('pods'))), (error: unknown) => {
      assert.ok(error instanceof ApiError);
      assert.match(error.message, /user "alice" may not get pods/);
      return true;
    });
    await alice.create(ADMISSION_POLICIES, policy(spec('secrets')));
  });
});

describe('addresses of API servers', () => {
  it('are addresses and networks', () => {
    for (const text of ['', 'a', '10.0.0.0/33', '10.0.0/8', '10.0.0.0/8/8', '::1/129', '10.0.0.0/x', '10.0.0.0/']) {
      assert.throws(() => addressList([text]), /expected addresses or networks such as/, text);
    }
    const list = addressList(['10.0.0.0/8', '192.0.2.7', '2001:db8::/32']);
    assert.deepEqual(
      ['10.9.8.7', '192.0.2.7', '192.0.2.8'].map((ip) => list.check(ip)),
      [true, true, false],
    );
    assert.ok(list.check('2001:db8::1', 'ipv6'));
  });
});
