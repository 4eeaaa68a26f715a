// The operations port, TLS, and the end of a server.
import assert from 'node:assert/strict';
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { cp, mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { Agent } from 'node:https';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { connect } from 'node:tls';
import { freePorts } from '../cluster/free-ports.ts';
import { PemConverter, X509CertificateGenerator } from '@peculiar/x509';
import { ensureLocalCertificates } from '../../src/control/certificates/index.ts';
import {
  guest,
  ModuleSource,
  requiredLabel,
  requires,
  review,
  scripted,
  startServer,
  TestFolder,
  type TestServer,
  until,
} from './harness.ts';

describe('the operations port', () => {
  it('has no series of a removed policy', async () => {
    await using server = await startServer({ policies: { kept: requires('app'), gone: requires('app') } });
    await server.review('gone', review());
    await server.review('kept', review());
    assert.match((await server.get('/metrics')).text, /^kubewarden_policy_evaluations_total\{.*"gone"/m);
    await server.write({ kept: requires('app') });
    await until(async () => !(await server.get('/metrics')).text.includes('"gone"'));
    assert.match((await server.get('/metrics')).text, /^kubewarden_policy_evaluations_total\{.*"kept"/m);
  });

  it('answers loopback names only where it listens on loopback, so that no web page reads it by DNS rebinding', async () => {
    await using server = await startServer({ policies: { p: requires('app') } });
    const statusFor = (host: string): Promise<number | undefined> =>
      new Promise((done, failed) => {
        const request = httpRequest(`${server.addresses.operations}/policies`, { headers: { host } }, (answer) => {
          answer.resume();
          done(answer.statusCode);
        });
        request.on('error', failed).end();
      });
    for (const host of ['localhost:8081', '127.0.0.1', '127.9.9.9:1', '[::1]:8081', 'LOCALHOST.', 'a.localhost']) {
      assert.equal(await statusFor(host), 200, host);
    }
    for (const host of ['rebound.example:8081', '127.0.0.1.example', 'localhost.example', '10.0.0.1', '[fe80::1]']) {
      assert.equal(await statusFor(host), 421, host);
    }
  });

  it('serves liveness, readiness, metrics and policies', async () => {
    await using server = await startServer({ policies: { p: requires('app'), bad: { module: 'file:///none.wasm' } } });
    await server.review('p', review());
    await server.post('/validate/p', 'x');
    for (const path of ['/livez', '/readyz', '/readiness', '/livez?verbose']) {
      assert.deepEqual(
        await server.get(path).then(({ status, text }) => ({ status, text })),
        { status: 200, text: 'ok\n' },
        path,
      );
    }
    assert.equal((await server.get('/livez', 'HEAD')).status, 200);
    const refused = await server.get('/policies', 'DELETE');
    assert.deepEqual([refused.status, refused.headers['allow']], [405, 'GET, HEAD']);
    assert.equal((await server.get('/none')).status, 404);
    assert.equal((await server.get('/policies/none')).status, 404);
    assert.equal((await server.get('/policies/%zz')).status, 404);
    const { status, headers, text } = await server.get('/metrics');
    assert.equal(status, 200);
    assert.match(String(headers['content-type']), /^text\/plain; version=0\.0\.4/);
    for (const name of [
      'kubewarden_policy_evaluations_total',
      'kubewarden_policy_evaluation_latency_milliseconds_bucket',
      'portcullis_policy_phase',
      'portcullis_policy_reload_duration_seconds_bucket',
      'portcullis_policy_reloads_total',
      'portcullis_review_duration_seconds_bucket',
      'portcullis_reviews_held',
      'portcullis_reviews_waiting',
      'process_resident_memory_bytes',
    ]) {
      assert.ok(text.includes(`\n${name}`), name);
    }
    const labels = {
      policy_name: 'p',
      policy_mode: 'protect',
      resource_kind: 'Pod',
      resource_namespace: 'shop',
      resource_request_operation: 'CREATE',
      accepted: 'false',
      mutated: 'false',
      request_origin: 'validate',
    };
    assert.equal(await server.metric('kubewarden_policy_evaluations_total', labels), 1);
    assert.equal(await server.metric('portcullis_policy_phase', { policy_name: 'p', phase: 'Active' }), 1);
    assert.equal(await server.metric('portcullis_policy_phase', { policy_name: 'bad', phase: 'Error' }), 1);
    const view = (await server.get('/policies')).json as { policies: { id: string }[]; source: { path: string } };
    assert.deepEqual(
      view.policies.map(({ id }) => id),
      ['bad', 'p'],
    );
    assert.equal(view.source.path, server.folder.policiesFile);
    assert.deepEqual(Object.keys(await server.status('p')), [
      'id',
      'kind',
      'mode',
      'phase',
      'reason',
      'message',
      'since',
      'desired',
      'serving',
      'attempts',
      'nextRetry',
    ]);
  });

  it('is not ready until every policy has served or failed once', async () => {
    await using source = await ModuleSource.start({ kind: 'hang' });
    const [operationsPort = 0, port = 0] = await freePorts(2);
    await using server = await startServer({
      policies: { p: { module: source.url }, other: requires('app') },
      fetchTimeoutMs: 700,
      port,
      operationsPort,
      isLoading: true,
    });
    const readyz = (): Promise<string> => getText(`http://127.0.0.1:${operationsPort}/readyz`);
    await until(() => source.requests > 0);
    assert.equal(await readyz(), '503 not ready: policies are being loaded\n');
    assert.equal(await getText(`http://127.0.0.1:${operationsPort}/livez`), '200 ok\n');
    await server.started;
    assert.equal(await readyz(), '200 ok\n');
    assert.equal((await server.status('p')).phase, 'Error');
    assert.equal(requiredLabel(await server.review('other', review())), 'app');
  });
});

describe('TLS', () => {
  it('uses a new certificate after a swap of symbolic links', async () => {
    await using folder = await TestFolder.create();
    const versions = [join(folder.path, 'v1'), join(folder.path, 'v2')] as const;
    for (const version of versions) {
      await ensureLocalCertificates(version);
    }
    const mount = join(folder.path, 'mount');
    await mkdir(mount);
    await symlink(versions[0], join(mount, '..data'));
    for (const name of ['tls.crt', 'tls.key']) {
      await symlink(join('..data', name), join(mount, name));
    }
    const tls = { certFile: join(mount, 'tls.crt'), keyFile: join(mount, 'tls.key') };
    await using server = await startServer({ policies: { p: requires('app') }, folder, tls });
    const cas = await Promise.all(versions.map((version) => readFile(join(version, 'ca.crt'))));
    const kept = new Agent({ keepAlive: true, maxSockets: 1, ca: cas[0]! });
    try {
      assert.equal(requiredLabel(await server.review('p', review(), { agent: kept })), 'app');
      await symlink(versions[1], join(mount, '..data_tmp'));
      await rename(join(mount, '..data_tmp'), join(mount, '..data'));
      await until(() => isTrusted(server, cas[1]!));
      assert.equal(await isTrusted(server, cas[0]!), false);
      // Open connections stay.
      assert.equal(requiredLabel(await server.review('p', review(), { agent: kept })), 'app');
      // An invalid certificate changes nothing.
      await cp(versions[1], join(folder.path, 'v3'), { recursive: true });
      await writeFile(join(folder.path, 'v3', 'tls.key'), 'not a key');
      await symlink(join(folder.path, 'v3'), join(mount, '..data_tmp'));
      await rename(join(mount, '..data_tmp'), join(mount, '..data'));
      await until(() => server.log.some(({ msg }) => String(msg).startsWith('certificate not reloaded')));
      assert.equal(await isTrusted(server, cas[1]!), true);
    } finally {
      kept.destroy();
    }
  });

  it('requires a client certificate if configured', async () => {
    await using folder = await TestFolder.create();
    const client = await selfSigned('CN=api server');
    const stranger = await selfSigned('CN=stranger');
    const clientCa = join(folder.path, 'client-ca.crt');
    await writeFile(clientCa, client.cert);
    const { certFile, keyFile } = folder.certificates;
    await using server = await startServer({
      policies: { p: requires('app') },
      folder,
      tls: { certFile, keyFile, clientCaFiles: [clientCa] },
    });
    const labelFor = (tls: object): Promise<string | undefined> =>
      server
        .review('p', review(), { agent: new Agent({ keepAlive: false }), tls: { ca: folder.ca, ...tls } })
        .then(requiredLabel);
    await assert.rejects(labelFor({}), /alert|ECONNRESET|certificate required|socket hang up/i);
    await assert.rejects(labelFor(stranger), /alert|ECONNRESET|unknown ca|socket hang up/i);
    assert.equal(await labelFor(client), 'app');
  });
});

describe('stopping', () => {
  it('answers pending reviews, accepts no new ones, and ends', async () => {
    await using server = await startServer({
      policies: { p: requires('app'), loop: { module: guest('loop-in-validate'), timeoutEvalSeconds: 1 } },
    });
    const held = Promise.all([server.review('loop', review()), server.review('loop', review())]);
    // Cut off when the test fails, which must not hide why.
    held.catch(() => undefined);
    await until(async () => (await server.metric('portcullis_reviews_held')) === 2);
    const stopped = server.server.stop();
    assert.equal((await server.get('/readyz')).text, 'not ready: stopping\n');
    assert.equal((await server.get('/livez')).status, 200);
    // The port may still be open for a moment.
    await until(() => isRefused(server));
    const answers = await held;
    assert.ok(answers.every(({ status }) => status?.code === 500));
    await stopped;
    await assert.rejects(server.get('/livez'), /ECONNREFUSED/);
  });

  it('sends large answers completely', async () => {
    await using server = await startServer({
      policies: { p: { module: guest('scripted-answer'), allowedToMutate: true, timeoutEvalSeconds: 10 } },
    });
    const data = 'm'.repeat(2 * 1024 * 1024);
    const held = server.review('p', scripted({ answer: JSON.stringify({ accepted: true, mutated_object: { data } }) }));
    await until(async () => (await server.metric('portcullis_reviews_held')) === 1);
    const stopped = server.server.stop();
    const patch = Buffer.from((await held).patch ?? '', 'base64').toString();
    assert.ok(patch.includes(data), `${patch.length} characters`);
    await stopped;
  });

  it('answers a request whose body is incomplete', async () => {
    await using server = await startServer({ policies: { p: requires('app') } });
    const body = JSON.stringify(review());
    const socket = connect({ port: server.port, host: 'localhost', ca: server.folder.ca });
    let received = '';
    socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
    const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
    socket.write(
      `POST /validate/p HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body.slice(0, 100)}`,
    );
    await new Promise((resolve) => setTimeout(resolve, 50));
    const stopped = server.server.stop();
    await server.get('/readyz');
    socket.write(body.slice(100));
    await closed;
    assert.match(received, /^HTTP\/1\.1 200 /);
    await stopped;
  });

  it('works twice, and before anything was loaded', async () => {
    await using source = await ModuleSource.start({ kind: 'hang' });
    const server = await startServer({ policies: { p: { module: source.url } }, isLoading: true });
    await until(() => source.requests > 0);
    await Promise.all([server.stop(), server.stop()]);
    await server[Symbol.asyncDispose]();
  });
});

describe('starting', () => {
  it('fails on a port in use', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as AddressInfo;
    try {
      await assert.rejects(startServer({ policies: {}, port }), { code: 'port-busy', message: /in use/ });
      await assert.rejects(startServer({ policies: {}, operationsPort: port }), { code: 'port-busy' });
    } finally {
      taken.close();
    }
  });

  it('fails with invalid certificates', async () => {
    const tls = { certFile: '/nonexistent/tls.crt', keyFile: '/nonexistent/tls.key' };
    await assert.rejects(startServer({ policies: {}, tls }), { code: 'tls-invalid', message: /nonexistent/ });
  });

  it('is not ready with an invalid policies file and nothing to serve', async () => {
    await using server = await startServer({ policies: '[' });
    assert.equal((await server.get('/livez')).status, 200);
    const { status, text } = await server.get('/readyz');
    assert.equal(status, 503);
    assert.match(text, /^not ready: .*policies/);
    await server.write({ p: requires('app') });
    await until(async () => (await server.get('/readyz')).status === 200);
    assert.equal(requiredLabel(await server.review('p', review())), 'app');
  });
});

function getText(url: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const request = httpRequest(url, { agent: false }, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    response.on('end', () => resolve(`${response.statusCode} ${text}`));
  });
  request.on('error', reject).end();
  return promise;
}

/** Whether the server accepts no connection for a review. */
function isRefused(server: TestServer): Promise<boolean> {
  const agent = new Agent({ ca: server.folder.ca });
  return server.review('p', review(), { agent }).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'ECONNREFUSED',
  );
}

/** Whether the server presents a certificate of the CA in its next connection. */
function isTrusted(server: TestServer, ca: Buffer): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ port: server.port, host: 'localhost', servername: 'localhost', ca }, () => {
    socket.destroy();
    resolve(true);
  });
  socket.on('error', () => resolve(false));
  return promise;
}

/** A self-signed CA certificate without a purpose. */
async function selfSigned(name: string): Promise<{ cert: string; key: string }> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned(
    { name, keys, signingAlgorithm: algorithm },
    webcrypto,
  );
  const key = PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
  return { cert: certificate.toString('pem'), key };
}
