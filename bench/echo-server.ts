// The baseline of the admission benches: node:https, with an answer of a verdict's size to every request.
// Runs as a process: node echo-server.ts CERT KEY prints its port.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';

const [certFile = '', keyFile = ''] = process.argv.slice(2);
const answer = JSON.stringify({
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  response: { uid: '705ab4f5-6393-11e8-b7cc-42010a800002', allowed: true, auditAnnotations: null, warnings: null },
});

const server = createServer(
  { cert: readFileSync(certFile), key: readFileSync(keyFile), noDelay: true },
  (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) });
      response.end(answer);
    });
  },
);
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
process.stdin.on('end', () => process.exit(0)).resume();
