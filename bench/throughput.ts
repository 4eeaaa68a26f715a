// Requests per second and response times over TLS, compared with a bare node:https echo server in the same run.
// Usage: npm run bench -- throughput [SECONDS]
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureLocalCertificates } from '../src/control/certificates/index.ts';
import { NODE_FLAGS } from '../bin/find-node.mjs';
import { VARIABLES } from '../tools/image/image-config.ts';
import { LineProcess, load, loadFromNode, type LoadResult, machine, median, printTable } from './processes.ts';
import { writeReview } from './review.ts';

const CONNECTIONS = 16;
const ROUNDS = 3;
const seconds = Number(process.argv[2] ?? 4);
const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'));
const examples = fileURLToPath(new URL('../examples', import.meta.url));

const policies: Readonly<Record<string, string>> = {
  'waPC, Rust, 1.2 MB': `module: file://${examples}/pod-privileged/policy.wasm`,
  'waPC, AssemblyScript': `module: file://${examples}/required-labels/policy.wasm\n  settings: {labels: [app.kubernetes.io/name]}`,
  'Rego, OPA': `module: file://${examples}/host-namespaces/policy.wasm`,
  'Rego, Gatekeeper': `module: file://${examples}/container-limits/policy.wasm\n  settings: {memory: 512Mi, cpu: "2"}`,
};

/** The result of a load, and the server's processor time for each request. Microseconds. */
type Measured = LoadResult & { readonly cpuUs: number };

/** One row for each target, with requests per second also as a share of the echo server's. */
function printResults(results: ReadonlyMap<string, readonly Measured[]>): void {
  const of = (name: string, figure: keyof Measured): number =>
    median((results.get(name) ?? []).map((result) => result[figure]));
  const baseline = of('echo', 'perSecond');
  printTable(
    ['what', 'requests/s', 'of echo', 'p50 ms', 'p99 ms', 'server CPU µs', 'failed'],
    [...results.keys()].map((name) => [
      name,
      of(name, 'perSecond').toFixed(0),
      (of(name, 'perSecond') / baseline).toFixed(2),
      of(name, 'p50').toFixed(1),
      of(name, 'p99').toFixed(1),
      of(name, 'cpuUs').toFixed(0),
      String((results.get(name) ?? []).reduce((sum, { failed }) => sum + failed, 0)),
    ]),
  );
}

/** Two generators: autocannon uses a fraction of the processor time of a client on node:https. */
const GENERATORS = [
  ['node:https client', loadFromNode],
  ['autocannon', load],
] as const;

try {
  const certificates = await ensureLocalCertificates(join(folder, 'pki'));
  const bodyFile = writeReview(join(folder, 'review.json'));
  const policiesFile = join(folder, 'policies.yml');
  const ids = Object.keys(policies).map((name, index) => [name, `policy-${index}`] as const);
  writeFileSync(policiesFile, ids.map(([name, id]) => `${id}:\n  ${policies[name] ?? ''}\n`).join(''));
  const echo = new LineProcess('./echo-server.ts', [certificates.certFile, certificates.keyFile]);
  const echoUrl = `https://localhost:${await echo.line()}/validate/policy`;
  const options = {
    policiesFile,
    dataDir: join(folder, 'data'),
    port: 0,
    operationsPort: 0,
    workers: 2,
    tls: certificates,
  };
  const server = new LineProcess('./serve.mjs', [JSON.stringify(options)], NODE_FLAGS, VARIABLES);
  const { admission } = JSON.parse(await server.line()) as { admission: string };
  const targets = [
    ['echo', echoUrl, echo] as const,
    ...ids.map(([name, id]) => [name, `${admission}/validate/${id}`, server] as const),
  ];
  for (const [generator, run] of GENERATORS) {
    console.log(
      `\nthroughput: ${generator}, ${CONNECTIONS} connections, two workers, median of ${ROUNDS} rounds of ${seconds} s; ${machine()}`,
    );
    const results = new Map<string, Measured[]>(targets.map(([name]) => [name, []]));
    for (const [, url] of targets) {
      await run({ url, bodyFile, connections: CONNECTIONS, seconds: 1 });
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const [name, url, process] of targets) {
        const before = process.cpuMs();
        const result = await run({ url, bodyFile, connections: CONNECTIONS, seconds });
        results.get(name)?.push({ ...result, cpuUs: ((process.cpuMs() - before) * 1000) / result.requests });
      }
    }
    printResults(results);
  }
  await Promise.all([echo.end(), server.end()]);
} finally {
  rmSync(folder, { recursive: true });
}
