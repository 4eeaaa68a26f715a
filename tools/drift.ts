// Checks that committed generated files are current, and names releases of network providers that nobody examined. `npm run drift`.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Each reports stale files, and the command that writes them. */
const CHECKS: readonly (readonly string[])[] = [
  ['tools/examples.ts', '--check'],
  ['tools/cel-reference.ts', '--check'],
  ['tools/embedded-kinds.ts', '--check'],
  ['tools/crds.ts', '--check'],
  ['tools/chart.ts', '--check'],
  ['tools/kubernetes-protobuf.ts', '--check'],
  ['tools/netpol-matrix.ts', '--check'],
  ['tools/netpol-schema.ts', '--check'],
  ['tools/network-provider-releases.ts', '--check'],
];

let failed = false;
for (const check of CHECKS) {
  const { status } = spawnSync(process.execPath, [...check], { cwd: root, stdio: 'inherit' });
  failed ||= status !== 0;
}
process.exit(failed ? 1 : 0);
