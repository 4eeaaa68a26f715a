import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isPrivateHost, isPublicAddress } from './public-address.ts';

/** An address or two of each entry of the IANA special-purpose registries, and metadata services of clouds. */
const SPECIAL = {
  'IPv4 registry': [
    '0.0.0.0 10.0.0.1 100.64.0.1 127.0.0.1 169.254.169.254 172.16.0.1 192.0.0.8 192.0.2.1 192.31.196.1 192.52.193.1',
    '192.88.99.1 192.168.0.1 192.175.48.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 240.0.0.1 255.255.255.255',
    '224.0.0.1',
  ],
  'IPv6 registry': [
    ':: ::1 ::ffff:10.0.0.1 64:ff9b::1 64:ff9b:1::1 100::1 100:0:0:1::1 2001::1 2001:1::1 2001:2::1 2001:3::1 2001:4:112::1',
    '2001:10::1 2001:20::1 2001:30::1 2001:db8::1 2002::1 2620:4f:8000::1 3fff::1 5f00::1 fc00::1 fd12::1 fe80::1 fe80::1%eth0',
    'fec0::1 ff02::1',
  ],
  'forms that contain IPv4 addresses': [
    '::127.0.0.1 ::ffff:127.0.0.1 64:ff9b::7f00:1 64:ff9b:1::7f00:1 2002:7f00:1:: 2001:0:7f00:1::',
  ],
  'metadata services': ['100.100.100.200 168.63.129.16 ::ffff:168.63.129.16 192.0.0.192 fd00:ec2::254 fd20:ce::254'],
};

describe('addresses that are not public', () => {
  for (const [group, lines] of Object.entries(SPECIAL)) {
    it(`include ${group}`, () => {
      for (const address of lines.join(' ').split(' ')) {
        assert.equal(isPublicAddress(address), false, address);
      }
    });
  }

  it('do not include addresses of the internet', () => {
    for (const address of [
      '1.1.1.1',
      '9.255.255.255',
      '128.0.0.1',
      '172.32.0.1',
      '2606:4700::1111',
      '2a00:1450::1',
      '::ffff:1.1.1.1',
    ]) {
      assert.equal(isPublicAddress(address), true, address);
    }
  });
});

describe('hosts', () => {
  it('of this machine and of the network are private, however they are written', () => {
    const own = ['localhost', 'LOCALHOST.', 'a.localhost', '127.1.2.3', '0.0.0.0', '169.254.169.254', '[::1]', '[::]'];
    const near = ['10.0.0.1', '[2001:db8::1]', '[fd00:ec2::254]', '168.63.129.16'];
    for (const host of [...own, '[fe80::1]', '[::ffff:7f00:1]', '[::ffff:a9fe:a9fe]', ...near]) {
      assert.equal(isPrivateHost(host), true, host);
    }
  });

  it('with other names are not, because only their addresses tell', () => {
    for (const host of ['example.com', 'localhost.example.com', '128.0.0.1', '127.example']) {
      assert.equal(isPrivateHost(host), false, host);
    }
  });
});
