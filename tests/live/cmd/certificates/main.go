// certificates writes what a test control plane needs into a directory: a CA, another CA that signed nothing, a server
// and a client certificate with their keys, and the key that service account tokens are signed with.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

type pair struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func main() {
	directory := os.Args[1]
	ca := issue(directory, "ca", template("podium-test-ca", true), nil)
	issue(directory, "other-ca", template("another-ca", true), nil)

	server := template("kube-apiserver", false)
	server.DNSNames = []string{"localhost", "kube.podium.test"}
	server.IPAddresses = []net.IP{net.ParseIP("127.0.0.1")}
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	issue(directory, "server", server, ca)

	client := template("certified-admin", false)
	client.Subject.Organization = []string{"system:masters"}
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	issue(directory, "client", client, ca)
	issue(directory, "sa", template("service-accounts", false), nil)
}

func template(name string, isCA bool) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	check(err)
	usage := x509.KeyUsageDigitalSignature
	if isCA {
		usage |= x509.KeyUsageCertSign
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: usage, IsCA: isCA, BasicConstraintsValid: true,
	}
}

func issue(directory, name string, asked *x509.Certificate, by *pair) *pair {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	if by == nil {
		by = &pair{asked, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, asked, by.certificate, &key.PublicKey, by.key)
	check(err)
	encoded, err := x509.MarshalECPrivateKey(key)
	check(err)
	write(filepath.Join(directory, name+".crt"), "CERTIFICATE", der)
	write(filepath.Join(directory, name+".key"), "EC PRIVATE KEY", encoded)
	return &pair{asked, key}
}

func write(path, kind string, data []byte) {
	check(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
