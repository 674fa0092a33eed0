// What the pure parts may use beside the language itself: text to bytes and back, and whether an address can be read. tsconfig.pure.json knows nothing else,
// so a socket, a timer or a clock in src/session or src/codec does not compile. Where the real types are known these merge.
interface TextEncoder {
  encode(text?: string): Uint8Array;
}
interface TextDecoder {
  decode(bytes?: Uint8Array): string;
}
declare var TextEncoder: { new (): TextEncoder };
declare var TextDecoder: { new (label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean }): TextDecoder };
interface URL {}
declare var URL: { new (url: string): URL };
declare function atob(text: string): string;
declare function btoa(text: string): string;
