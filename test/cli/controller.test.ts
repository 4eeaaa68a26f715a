// `portcullis controller` and `portcullis serve --policy-server` as processes: refused flags, and their cooperation.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ADMIN_USER, EmbeddedCluster, Gateway, writeKubeconfig } from '../../src/apiserver/index.ts';
import { CONTROLLER_USER, grantAccess, POLICY_SERVER_USER } from '../../src/cli/start/access.ts';
import { type AuditStatus, customResourceDefinition, kubernetesKind, OWN_KINDS } from '../../src/resources/index.ts';
import { ensureLocalCertificates, type LocalCertificates } from '../../src/control/certificates/index.ts';
import { eventually } from '../cluster/eventually.ts';
import { portcullis, ROOT } from './command.ts';
import { LoggingProcess } from './logging-process.ts';

const CONTROL = ['--control-cert-file', 'c', '--control-key-file', 'k', '--control-ca-file', 'a'];
const SERVERS = ['--policy-server-url', 'https://{name}.example.com', '--policy-server-ca-file', 'package.json'];

const flagged = (flags: object): string[] =>
  Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);

/** Several times that of the command. */
const PATIENCE = { timeoutMs: 60_000 };

describe('the command line of processes in clusters', { concurrency: 2 }, () => {
  for (const { what, args, message } of [
    { what: 'no cluster', args: ['controller', ...SERVERS, ...CONTROL], message: /no cluster is named/ },
    {
      what: 'two clusters',
      args: ['controller', ...SERVERS, ...CONTROL, '--kubeconfig', 'x', '--in-cluster'],
      message: /cannot be used with option '--in-cluster'/,
    },
    { what: 'no certificates', args: ['controller', ...SERVERS, '--context', 'x'], message: /need certificates/ },
    {
      what: 'no address of policy servers',
      args: ['controller', ...CONTROL, '--context', 'x'],
      message: /no policy servers are configured\n.*--manage-policy-servers.*--policy-server-url/,
    },
    {
      what: 'policy servers of no image',
      args: ['controller', '--context', 'x', '--manage-policy-servers'],
      message: /--manage-policy-servers needs --policy-server-image/,
    },
    {
      what: 'an address that nobody can listen on',
      args: ['controller', '--context', 'x', '--manage-policy-servers', '--policy-server-addr', 'pods'],
      message: /expected an IP address, got "pods"/,
    },
    {
      what: 'an address that no API server calls',
      args: ['controller', '--policy-server-url', 'http://{name}'],
      message: /expected https:\/\/HOST:PORT, \{name\} standing for a name, got http:/,
    },
    {
      what: 'half a webhook',
      args: ['controller', ...SERVERS, ...CONTROL, '--context', 'x', '--webhook-port', '0'],
      message: /--webhook-port needs --webhook-cert-file/,
    },
    {
      what: 'a webhook without a port',
      args: ['controller', ...SERVERS, ...CONTROL, '--context', 'x', '--webhook-url', 'https://x'],
      message: /without --webhook-port/,
    },
    {
      what: 'a deadline that is none',
      args: ['controller', ...SERVERS, ...CONTROL, '--context', 'x', '--progress-deadline', 'soon'],
      message: /--progress-deadline soon: expected a duration/,
    },
    {
      what: 'a deadline that is over before it begins',
      args: ['controller', ...SERVERS, ...CONTROL, '--context', 'x', '--progress-deadline', '0s'],
      message: /--progress-deadline 0s: expected a duration from 1s to 24h/,
    },
    {
      what: 'a history without end',
      args: ['controller', ...SERVERS, ...CONTROL, '--context', 'x', '--revision-history-limit', '1001'],
      message: /expected a whole number from 0 to 1000, got 1001/,
    },
    {
      what: 'a lease that is too short',
      args: ['controller', ...SERVERS, ...CONTROL, '--context', 'x', '--lease-duration', '1s'],
      message: /--lease-duration 1s: expected at least 3s/,
    },
    {
      what: 'a replica that has a file, too',
      args: ['serve', '--policy-server', 'default', '--policies', 'policies.yml'],
      message: /'--policy-server <name>' cannot be used with option '--policies <file>'/,
    },
    {
      what: 'a replica that nobody finds',
      args: ['serve', '--policy-server', 'default', '--context', 'x', ...CONTROL],
      message: /--control-addr 0\.0\.0\.0 is not an address that others can connect to/,
    },
    {
      what: 'a replica of no cluster',
      args: ['serve', '--policy-server', 'default', '--control-advertise', 'localhost', ...CONTROL],
      message: /no cluster is named/,
    },
  ]) {
    it(`refuses ${what}`, async () => {
      const { code, stderr, stdout } = await portcullis(args, { env: { POD_IP: '' } });
      assert.equal(code, 2, stderr + stdout);
      assert.match(stderr, message);
    });
  }
});

describe('controller and replica in processes of their own', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-controller-'));
  let cluster: EmbeddedCluster;
  let gateway: Gateway;
  let certificates: LocalCertificates;
  let url = '';
  before(async () => {
    certificates = await ensureLocalCertificates(join(folder, 'pki'));
    cluster = await EmbeddedCluster.open({
      tokens: [
        { token: 'controller', user: CONTROLLER_USER },
        { token: 'replica', user: POLICY_SERVER_USER },
        { token: 'admin', user: ADMIN_USER },
      ],
    });
    const type = kubernetesKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition') ?? assert.fail('no such kind');
    for (const kind of OWN_KINDS) {
      await cluster.admin.create(type, customResourceDefinition(kind));
    }
    await grantAccess(cluster);
    const read = (file: string): string => readFileSync(file, 'utf8');
    const { caFile, certFile, keyFile } = certificates;
    const tls = { cert: read(certFile), key: read(keyFile) };
    gateway = new Gateway({ cluster, authenticator: cluster.authenticator, tls });
    ({ url } = await gateway.start({ port: 0 }));
    for (const token of ['controller', 'replica', 'admin']) {
      await writeKubeconfig(join(folder, token), { server: url, ca: read(caFile), token });
    }
  });
  after(async () => {
    await gateway.stop();
    await cluster.close();
    rmSync(folder, { recursive: true });
  });

  const kubectl = (...args: readonly string[]) => portcullis(args, { env: { KUBECONFIG: join(folder, 'admin') } });
  const control = (): object => ({
    'control-cert-file': certificates.controlCertFile,
    'control-key-file': certificates.controlKeyFile,
    'control-ca-file': certificates.caFile,
  });

  function replica(nodeFlags: readonly string[] = []): LoggingProcess {
    const flags = {
      'policy-server': 'default',
      'replica-name': 'one',
      kubeconfig: join(folder, 'replica'),
      addr: '127.0.0.1',
      port: 0,
      'readiness-probe-port': 0,
      'cert-file': certificates.certFile,
      'key-file': certificates.keyFile,
      'control-addr': '127.0.0.1',
      'control-port': 0,
      'policies-download-dir': join(folder, 'replica-data'),
      ...control(),
    };
    return new LoggingProcess(['serve', ...flagged(flags)], {}, nodeFlags);
  }

  function controllerFlags(admission: string, others: object = {}): string[] {
    return flagged({
      kubeconfig: join(folder, 'controller'),
      'operations-port': 0,
      'policy-server-url': admission,
      'policy-server-ca-file': certificates.caFile,
      'webhook-port': 0,
      'webhook-addr': '127.0.0.1',
      'webhook-cert-file': certificates.certFile,
      'webhook-key-file': certificates.keyFile,
      'webhook-ca-file': certificates.caFile,
      ...control(),
      ...others,
    });
  }

  function controller(admission: string, others: object = {}, nodeFlags: readonly string[] = []): LoggingProcess {
    return new LoggingProcess(['controller', ...controllerFlags(admission, others)], {}, nodeFlags);
  }

  it('waits for an unavailable API server, is live meanwhile, and can be stopped', async () => {
    const text = readFileSync(join(folder, 'controller'), 'utf8').replace(/127\.0\.0\.1:\d+/, '127.0.0.1:1');
    writeFileSync(join(folder, 'nowhere'), text);
    await using waiting = controller('https://127.0.0.1:1', { kubeconfig: join(folder, 'nowhere') });
    await waiting.says('the API server does not answer, retrying');
    waiting.signal('SIGTERM');
    await waiting.says('stopped');
    assert.equal(await waiting.ended(), 0);
  });

  it('names the port of the controller that is in use, and ends', async () => {
    const { port } = new URL(url);
    for (const flag of ['--operations-port', '--webhook-port']) {
      const { code, stdout, stderr } = await portcullis(['controller', ...controllerFlags(url), flag, port]);
      assert.equal(code, 1, stdout);
      assert.match(stderr, new RegExp(`^error: cannot listen on 127\\.0\\.0\\.1:${port}: the port is in use\n$`));
    }
  });

  it('roll out a policy, report their state, and stop cleanly', async () => {
    await using serving = replica();
    const { admission } = await serving.says('policy server ready');
    await using leading = controller(String(admission));
    const { operations, webhook } = await leading.says('controller ready');
    assert.match(String(webhook), /^https:/);
    await leading.says('leading');
    assert.equal(await (await fetch(`${String(operations)}/readyz`)).text(), 'ok\n');
    assert.match(await (await fetch(`${String(operations)}/metrics`)).text(), /^leader_election_master_status.* 1$/m);
    // One that is absent for two minutes is.
    assert.match(await (await fetch(`${String(operations)}/metrics`)).text(), /^portcullis_auditor_absent 0$/m);
    assert.equal((await fetch(`${String(operations)}/nowhere`)).status, 404);

    const applied = await portcullis(['apply', '-f', 'examples/pinned-images/policy.yaml'], {
      env: { KUBECONFIG: join(folder, 'admin') },
    });
    assert.equal(applied.code, 0, applied.stderr);
    // On a busy machine the replica may miss heartbeats, and the command ends with that.
    await eventually(async () => {
      const status = await kubectl('rollout', 'status', 'cap/pinned-images', '--timeout', '20s');
      assert.equal(status.code, 0, status.stderr);
      assert.match(status.stdout, /Active: revision 1 serves on 1 of 1 replicas/);
    }, PATIENCE);

    leading.signal('SIGTERM');
    await leading.says('stopped');
    assert.equal(await leading.ended(), 0);
    const lease = cluster.state.get(
      { group: 'coordination.k8s.io', resource: 'leases' },
      'portcullis',
      'portcullis-controller',
    );
    assert.equal((lease as { spec?: { holderIdentity?: string } } | undefined)?.spec?.holderIdentity, '');
    serving.signal('SIGTERM');
    assert.equal(await serving.ended(), 0);
  });

  it('says of a policy that no auditor works where there shall be none, to who may read it only', async () => {
    await using leading = controller('https://127.0.0.1:1', { auditor: false });
    const { operations } = await leading.says('controller ready');
    await eventually(async () => {
      const { stdout } = await kubectl('get', 'cap', 'pinned-images', '-o', 'json');
      const { audit } = (JSON.parse(stdout) as { status: { audit?: AuditStatus } }).status;
      assert.deepEqual([audit?.state, audit?.reason], ['Unknown', 'NoAuditor']);
      assert.match(audit?.message ?? '', /existing objects are not judged \(since 20/);
    }, PATIENCE);
    assert.match((await kubectl('get', 'cap')).stdout, /FINDINGS.*\npinned-images .* Unknown /);
    const page = await (await fetch(`${String(operations)}/metrics`)).text();
    assert.doesNotMatch(page, /portcullis_auditor_absent/);
    leading.signal('SIGTERM');
    assert.equal(await leading.ended(), 0);
  });

  it('end soon after SIGTERM where a policy keeps their threads in native code', { timeout: 600_000 }, async () => {
    const stuck = ['--import', join(ROOT, 'test/fixtures/stuck-threads.mjs')];
    await using serving = replica(stuck);
    const { admission } = await serving.says('policy server ready');
    const policy = readFileSync('examples/pinned-images/policy.yaml', 'utf8')
      .replace('name: pinned-images', 'name: stuck')
      .replace('variables.unpinned.size() == 0', "object.metadata.name != 'stuck in native code'");
    const apply = () => portcullis(['apply', '-f', '-'], { env: { KUBECONFIG: join(folder, 'admin') }, stdin: policy });
    const ends = async (one: LoggingProcess): Promise<void> => {
      await eventually(async () => assert.ok(one.hasStuckThread()), PATIENCE);
      one.signal('SIGTERM');
      await one.says('stopped');
      assert.equal(await one.ended(), null, 'it ends with its thread');
    };
    await using checking = controller(String(admission), {}, stuck);
    await checking.says('leading');
    assert.match((await apply()).stderr, /it takes more than 5 s to check/);
    await ends(checking);
    await using leading = controller(String(admission));
    await leading.says('leading');
    await eventually(async () => {
      const { code, stderr } = await apply();
      assert.equal(code, 0, stderr);
    }, PATIENCE);
    await ends(serving);
  });
});
