import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

const HOUR_MS = 3_600_000;
const [SEQUENCE, SET, INTEGER, BITS, BYTES, OID, TEXT, TIME, TRUE] = [0x30, 0x31, 2, 3, 4, 6, 12, 23, 1];
const ECDSA_SHA256 = der(SEQUENCE, der(OID, Buffer.from('2a8648ce3d040302', 'hex')));

/** A certificate of its own making for the loopback address, good for an hour to either side of now. */
export function makeCertificate(): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const commonName = der(SEQUENCE, der(OID, Buffer.from('550403', 'hex')), der(TEXT, Buffer.from('loopback')));
  const name = der(SEQUENCE, der(SET, commonName));
  const validity = der(SEQUENCE, timeAt(Date.now() - HOUR_MS), timeAt(Date.now() + HOUR_MS));
  // An authority that vouches for itself, and for the address 127.0.0.1.
  const isAuthority = extension('551d13', der(SEQUENCE, der(TRUE, Buffer.from([0xff]))));
  const address = extension('551d11', der(SEQUENCE, der(0x87, Buffer.from([127, 0, 0, 1]))));
  const body = der(
    SEQUENCE,
    der(0xa0, der(INTEGER, Buffer.from([2]))),
    der(INTEGER, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_SHA256,
    ...[name, validity, name],
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(SEQUENCE, isAuthority, address)),
  );
  const signature = der(BITS, Buffer.from([0]), sign('sha256', body, privateKey));
  const lines =
    der(SEQUENCE, body, ECDSA_SHA256, signature)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    cert: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n'),
  };
}

function extension(oid: string, value: Buffer): Buffer {
  return der(SEQUENCE, der(OID, Buffer.from(oid, 'hex')), der(BYTES, value));
}

function timeAt(at: number): Buffer {
  return der(TIME, Buffer.from(`${new Date(at).toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`));
}

/** A value with its tag and length, as in DER. */
function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
