import type { AddressInfo } from 'node:net';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** A line to another port on this machine, which can be cut and mended. */
export class Wire {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #cut = false;

  private constructor(port: number) {
    this.#server = createServer((near) => {
      this.#hold(near);
      if (this.#cut) return void near.destroy();
      const far = connect(port, '127.0.0.1');
      this.#hold(far);
      near.pipe(far).pipe(near);
      near.on('close', () => far.destroy());
      far.on('close', () => near.destroy());
    });
  }

  static async to(url: string): Promise<Wire> {
    const wire = new Wire(Number(new URL(url).port));
    await new Promise<void>((resolve) => wire.#server.listen(0, '127.0.0.1', resolve));
    return wire;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Breaks every connection, and lets none be made. */
  cut(): void {
    this.#cut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  mend(): void {
    this.#cut = false;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }

  #hold(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }
}
